/*
 * The resolver for the names of masters. It keeps no answer: each connect asks anew, so that a name
 * may move, as that of a managed Redis does at a failover.
 *
 * libevent reads resolv.conf and hosts once; here they are read again when they have changed, as
 * they do on a machine that comes into another network.
 */
#include <event2/dns.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/util.h"
#include "server/private.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define HOSTS "/etc/hosts"

/* Reads both files. Without a name server the names of /etc/hosts are still there. */
static void read_name_files(struct evdns_base *dns)
{
    /* A connect has a second or two in all. By then another name server must have been asked in the
     * place of one that is gone; but IPv4 need not wait for one that says nothing of IPv6. */
    evdns_base_set_option(dns, "timeout:", "0.2");
    evdns_base_set_option(dns, "attempts:", "6");
    evdns_base_set_option(dns, "getaddrinfo-allow-skew:", "0.6");
    (void)evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL, RESOLV_CONF);
}

struct evdns_base *server_make_dns(struct event_base *base)
{
    struct evdns_base *dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);

    if (!dns)
        util_die("cannot make a resolver of names");
    read_name_files(dns);
    return dns;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Tells whether a file is another one than at the last call. One that is gone for now is the last.
 */
static bool has_changed(const char *path, struct stat *last)
{
    struct stat now;

    if (stat(path, &now) != 0 || is_same_file(&now, last))
        return false;
    *last = now;
    return true;
}

void server_look_at_names(struct server *s)
{
    bool resolv_conf = has_changed(RESOLV_CONF, &s->resolv_conf);
    bool hosts = has_changed(HOSTS, &s->hosts);

    if (!s->dns || (!resolv_conf && !hosts))
        return;
    log_info("server", "names of masters: %s has changed and is read again",
             resolv_conf ? RESOLV_CONF : HOSTS);
    evdns_base_clear_nameservers_and_suspend(s->dns);
    evdns_base_clear_host_addresses(s->dns);
    evdns_base_search_clear(s->dns);
    read_name_files(s->dns);
    evdns_base_resume(s->dns);
}

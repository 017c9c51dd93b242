/* One password at a time against its hash, in a helper thread.
 *
 * The loop and the thread share `job` and nothing else; its state says whose it is: the thread's
 * while GIVEN, else the loop's. The state changes under the lock. */
#include "base/hasher.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/password.h"

enum state { FREE, GIVEN, DONE, STOPPED };

static struct {
    enum state state;
    char hash[PASSWORD_HASH_MAX], password[HASHER_PASSWORD_MAX];
    size_t len;
    int iterations;
    bool fits;
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool has_thread;
static int done_fd = -1; /* -1: there will be no thread */

static void compute(void)
{
    bool fits = password_fits(job.hash, job.password, job.len, job.iterations);

    job.fits = fits && job.len < sizeof job.password;
    OPENSSL_cleanse(job.password, sizeof job.password);
}

static enum state get_state(void)
{
    pthread_mutex_lock(&lock);
    enum state state = job.state;
    pthread_mutex_unlock(&lock);
    return state;
}

static void set_state(enum state state)
{
    pthread_mutex_lock(&lock);
    job.state = state;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Returns false when the thread is to end. */
static bool wait_for_job(void)
{
    pthread_mutex_lock(&lock);
    while (job.state != GIVEN && job.state != STOPPED)
        pthread_cond_wait(&changed, &lock);
    bool given = job.state == GIVEN;
    pthread_mutex_unlock(&lock);
    return given;
}

static void *run_thread(void *arg)
{
    const uint64_t one = 1;

    (void)arg;
    while (wait_for_job()) {
        compute();
        set_state(DONE);
        (void)!write(done_fd, &one, sizeof one);
    }
    return NULL;
}

int hasher_start(void)
{
    assert(done_fd < 0);
    done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return done_fd;
}

/* Starts the thread when there is a first job and not before: beside a second thread each system
 * call and each block of memory costs the loop a little more. Returns false when there is none. */
static bool have_thread(void)
{
    static struct log_limit limit;
    sigset_t all, before;

    if (has_thread || done_fd < 0)
        return has_thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals are the loop's */
    int err = pthread_create(&thread, NULL, run_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    has_thread = err == 0;
    if (err != 0 && log_limited(&limit, clock_ms()))
        log_warn("users", "cannot make a thread, the loop stands still for each password: %s",
                 strerror(err));
    return has_thread;
}

void hasher_stop(void)
{
    pthread_mutex_lock(&lock);
    while (has_thread && job.state == GIVEN)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    set_state(STOPPED);
    if (has_thread)
        pthread_join(thread, NULL);
    has_thread = false;
    if (done_fd >= 0)
        close(done_fd);
    done_fd = -1;
    job.state = FREE;
}

bool hasher_is_busy(void)
{
    return get_state() != FREE;
}

void hasher_give(const char *hash, const char *password, size_t len, int iterations)
{
    assert(!hasher_is_busy() && strlen(hash) < sizeof job.hash);
    strcpy(job.hash, hash);
    job.len = len < sizeof job.password ? len : sizeof job.password;
    memcpy(job.password, password, job.len);
    job.iterations = iterations;
    if (have_thread()) {
        set_state(GIVEN);
    } else {
        compute();
        set_state(DONE);
    }
}

bool hasher_take(bool *fits)
{
    uint64_t count;

    if (get_state() != DONE)
        return false;
    if (done_fd >= 0)
        (void)!read(done_fd, &count, sizeof count);
    *fits = job.fits;
    set_state(FREE);
    return true;
}

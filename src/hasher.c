/* One password at a time against its hash, in a helper thread.
 *
 * The loop and the thread share `job` and nothing else; its state says whose it is: the thread's
 * while GIVEN, else the loop's. The state changes under the lock. */
#include "hasher.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "password.h"

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
static int done_fd = -1; /* -1: there is no thread */

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

static void *run(void *arg)
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
    sigset_t all, before;

    assert(done_fd < 0);
    done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (done_fd < 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals are the loop's */
    int err = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        close(done_fd);
        done_fd = -1;
    }
    return done_fd;
}

void hasher_stop(void)
{
    if (done_fd < 0)
        return;
    pthread_mutex_lock(&lock);
    while (job.state == GIVEN)
        pthread_cond_wait(&changed, &lock);
    job.state = STOPPED;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
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
    if (done_fd >= 0) {
        set_state(GIVEN);
    } else {
        compute();
        job.state = DONE;
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

/* A second thread that submits the backward pass while the first one waits, named as PyTorch
 * names it. The program defines backward_pass(). */
#ifndef CLIENT_AUTOGRAD_H
#define CLIENT_AUTOGRAD_H

#include "client.h"

#include <pthread.h>
#include <sys/prctl.h>

static void backward_pass(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static enum { STARTING, WAITING, ASKED, QUIT } turn;
static pthread_t autograd_thread;

/* pre: locked. */
static void hand_over(int to)
{
    turn = to;
    pthread_cond_broadcast(&cond);
}

static void *autograd(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    CHECK(cudaSetDevice(0));
    prctl(PR_SET_NAME, "pt_autograd_0");
    for (hand_over(WAITING); turn != QUIT;) {
        while (turn == WAITING)
            pthread_cond_wait(&cond, &lock);
        if (turn == ASKED) {
            backward_pass();
            hand_over(WAITING);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void autograd_start(void)
{
    pthread_create(&autograd_thread, NULL, autograd, NULL);
    pthread_mutex_lock(&lock);
    while (turn == STARTING)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
}

static void backward(void)
{
    pthread_mutex_lock(&lock);
    hand_over(ASKED);
    while (turn != WAITING)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
}

static void autograd_stop(void)
{
    pthread_mutex_lock(&lock);
    hand_over(QUIT);
    pthread_mutex_unlock(&lock);
    pthread_join(autograd_thread, NULL);
}

#endif

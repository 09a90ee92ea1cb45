/* Ranks of a communicator in several processes: where they meet.
 *
 * Each process has its own device and, with SIM_CLOCK=virtual, its own clock. A kernel that
 * belongs to a collective says in memory that the processes share when it starts, and ends so long
 * after the last of them has started. Until all have, a process goes by what it knows for certain:
 * nobody who is missing starts before the time that his clock shows, so that nothing of this
 * kernel's end can happen before that time plus the transfer. That far the device may be carried
 * on, and no further. Called with sim_lock() held where nothing else is said. */
#ifndef SIM_PEERS_H
#define SIM_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_peers;
struct sim_op;

/* One thing that a kernel does together with other processes: a collective, or one end of a
 * message. */
struct sim_meeting {
    struct sim_meeting *next;
    struct sim_peers *peers;
    const char *op; /* static */
    uint64_t bytes;
    uint64_t index; /* of the communicator's collectives, or of the messages from rank to rank */
    int64_t ns;     /* from the start of the last to the end of all */
    int64_t latest; /* the start of the last, once known */
    int peer;       /* -1: all ranks */
    bool sends;
    void *slot; /* shared, once it has a number */
    uint32_t needed;
};

#define SIM_ID 128 /* bytes of a unique id: text */

/* Not locked. Waits for all ranks, then sets the clock to that of the last. post: 0, and *out is
 * NULL if all of them are in this process; or -errno. */
int sim_peers_join(const char *id, unsigned ranks, unsigned rank, struct sim_peers **out);
/* Not locked. What all ranks ask of each other with a colour: the id, the size and the rank of the
 * new communicator. post: 0 or -errno */
int sim_peers_split(struct sim_peers *peers, int color, int key, char id[SIM_ID], unsigned *ranks,
                    unsigned *rank);
void sim_peers_leave(struct sim_peers *peers); /* not locked */
void sim_peers_leave_all(void);                /* not locked */
bool sim_peers_broken(const struct sim_peers *peers);
uint64_t sim_peers_number(const struct sim_peers *peers); /* the same on all ranks */

void sim_meetings_free(struct sim_meeting **list);
/* In the order of the launches: which collective, which message this is. */
void sim_meeting_number(struct sim_meeting *m);
void sim_meeting_start(struct sim_meeting *m, int64_t t); /* this rank's kernel starts */
/* post: true and *t is when it ends, on this rank; else it ends no earlier than *t. */
bool sim_meeting_end(struct sim_meeting *m, int64_t start, int64_t *t);

void sim_peers_clock(int64_t t); /* nothing will start in this process before t */
/* Until what `m` waits for may have changed; lets go of the lock meanwhile. */
void sim_peers_wait(const struct sim_meeting *m, int64_t until);

#endif

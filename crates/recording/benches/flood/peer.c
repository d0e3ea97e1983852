/* The peer: threads that write an LTTng-UST event with two fields at a rate.
 *
 * peer RATE THREADS MILLISECONDS: each thread writes what is due of its part of the rate every 200 us, as the producer of Talea's
 * side does. Prints how many events were written.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double rate;
static double seconds;

static double now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *flood(void *thread) {
    const struct timespec pause = {0, 200000};
    double began = now();
    uint64_t written = 0;
    for (;;) {
        double elapsed = now() - began;
        int is_over = elapsed >= seconds;
        uint64_t due = (uint64_t)((is_over ? seconds : elapsed) * rate);
        for (; written < due; written++) {
            lttng_ust_tracepoint(talea_peer, two_fields, written, (uint64_t)(uintptr_t)thread);
        }
        if (is_over) {
            return (void *)(uintptr_t)written;
        }
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    int threads = atoi(argv[2]);
    rate = atof(argv[1]) / threads;
    seconds = atof(argv[3]) / 1000;
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    for (int thread = 0; thread < threads; thread++) {
        pthread_create(&all[thread], NULL, flood, (void *)(uintptr_t)thread);
    }
    uint64_t sum = 0;
    for (int thread = 0; thread < threads; thread++) {
        void *written;
        pthread_join(all[thread], &written);
        sum += (uint64_t)(uintptr_t)written;
    }
    printf("%" PRIu64 "\n", sum);
    return 0;
}

/* A program that declares and writes events, for the test beside it. */
#define _GNU_SOURCE
#include "talea.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct talea_field fix[] = {{"latitude", TALEA_F64}, {"satellites", TALEA_U8}, {"drift", TALEA_I32}};
static const struct talea_field named[] = {{"who", TALEA_TEXT}};
static const struct talea_field raw[] = {{"digest", TALEA_BYTES8}, {"sign", TALEA_I8}, {"ok", TALEA_BOOL}};
static const struct talea_event events[] = {
    {"fix", "A position was computed.", fix, 3},
    {"named", "Somebody has a name.", named, 1},
    {"raw", "What came over the wire.", raw, 3},
};

static const talea_family *nav;

static void *work(void *unused) {
    (void)unused;
    talea_ring *ring = talea_attach_thread("worker");
    union talea_value who[] = {{.text = "a text that is longer than sixteen bytes"}};
    talea_write(nav, 1, who);
    printf("%d\n", (int)gettid());
    talea_detach_thread(ring);
    return NULL;
}

int main(void) {
    if (talea_publish("no/name") != NULL) {
        return 3;
    }
    fprintf(stderr, "%s\n", talea_error());
    talea_stream *stream = talea_publish("c-program");
    static const struct talea_field wide[] = {{"a", TALEA_U64}, {"b", TALEA_U64}, {"c", TALEA_U64}};
    static const struct talea_event too_wide[] = {{"wide", "It does not fit.", wide, 3}};
    if (stream == NULL || talea_register("wide", "Too much.", too_wide, 1) != NULL) {
        return 4;
    }
    fprintf(stderr, "%s\n", talea_error());
    nav = talea_register("nav", "What the navigation filter does.", events, 3);
    if (nav == NULL) {
        fprintf(stderr, "%s\n", talea_error());
        return 5;
    }
    static const unsigned char digest[8] = {1, 2, 3, 4, 5, 6, 7, 0xff};
    union talea_value position[] = {{.f = 47.25}, {.u = 9}, {.i = -5}};
    union talea_value bytes[] = {{.bytes = digest}, {.i = -1}, {.u = 1}};
    printf("%d\n", talea_is_on(nav, 0));
    talea_write(nav, 0, position);
    talea_write(nav, 2, bytes);
    talea_write(nav, 99, bytes);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    talea_unpublish(stream);
    return 0;
}

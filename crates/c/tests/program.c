/* A program that declares and writes events, for the test beside it. */
#define _GNU_SOURCE
#include "talea.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct talea_field fix[] = {{"latitude", TALEA_F64}, {"satellites", TALEA_U8}, {"drift", TALEA_I32}};
static const struct talea_field named[] = {{"who", TALEA_TEXT}};
static const struct talea_field raw[] = {{"digest", TALEA_BYTES8}, {"sign", TALEA_I8}, {"ok", TALEA_BOOL}};
static const struct talea_field said[] = {{"level", TALEA_U8}, {"message", TALEA_LONG_TEXT(40)}, {"line", TALEA_U32}};
static const struct talea_field frame[] = {{"data", TALEA_LONG_BYTES(256)}};
static const struct talea_event events[] = {
    {"fix", "A position was computed.", fix, 3},
    {"named", "Somebody has a name.", named, 1},
    {"raw", "What came over the wire.", raw, 3},
    {"said", "The program says something.", said, 3},
    {"frame", "A frame came.", frame, 1},
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
    static const struct talea_field long_ones[] = {{"a", TALEA_LONG_TEXT(257)}, {"b", TALEA_LONG_TEXT(8)}, {"c", TALEA_LONG_TEXT(8)}};
    static const struct talea_event too_long[] = {{"long", "It is too long.", long_ones, 1}};
    static const struct talea_event two_long[] = {{"two", "One is enough.", long_ones + 1, 2}};
    if (talea_register("long", "Too much.", too_long, 1) != NULL) {
        return 6;
    }
    fprintf(stderr, "%s\n", talea_error());
    if (talea_register("two", "Too much.", two_long, 1) != NULL) {
        return 7;
    }
    fprintf(stderr, "%s\n", talea_error());
    nav = talea_register("nav", "What the navigation filter does.", events, 5);
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
    union talea_value message[] = {{.u = 3}, {.text = "exactly forty bytes of a message, or not"}, {.u = 17}};
    talea_write(nav, 3, message);
    /* The fortieth byte is the first one of a character of two. */
    message[1].text = "what is longer is cut between charactersé";
    talea_write(nav, 3, message);
    message[1].text = "what is longer is cut between characteré, and more";
    talea_write(nav, 3, message);
    message[1].text = NULL;
    talea_write(nav, 3, message);
    unsigned char many[300];
    for (int index = 0; index < 300; index++) {
        many[index] = (unsigned char)index;
    }
    struct talea_span span = {many, 3};
    union talea_value data[] = {{.span = &span}};
    talea_write(nav, 4, data);
    span.length = 300;
    talea_write(nav, 4, data);
    data[0].span = NULL;
    talea_write(nav, 4, data);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    talea_unpublish(stream);
    return 0;
}

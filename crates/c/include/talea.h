/* Declaring and writing events of a Talea stream from C and C++.
 *
 *     cargo build --release -p talea-c
 *     cc program.c -Iinclude target/release/libtalea_c.a -lpthread -ldl -lm -o program
 *
 * A program publishes a stream, registers a family of events, and writes them; others list, switch, follow and record the stream
 * (`talea trace list`, `talea trace record -- ./program`). Writing an event that nobody wants costs some loads; writing one that somebody
 * wants costs no allocation, lock or system call, once the thread has a ring.
 */
#ifndef TALEA_H
#define TALEA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of fields. Those of an event have 144 bits together: two words of 64 bits and 16 bits more. A text has up to 16 bytes of UTF-8,
 * what is longer is cut; it and 16 bytes take both words, 8 bytes take one. */
enum talea_type {
    TALEA_U64 = 0,
    TALEA_I64 = 1,
    TALEA_F64 = 2,
    TALEA_U32 = 3,
    TALEA_I32 = 4,
    TALEA_F32 = 5,
    TALEA_U16 = 6,
    TALEA_I16 = 7,
    TALEA_U8 = 8,
    TALEA_I8 = 9,
    TALEA_BOOL = 10,
    TALEA_DURATION = 11, /* nanoseconds */
    TALEA_TEXT = 12,
    TALEA_BYTES8 = 13,
    TALEA_BYTES16 = 14
};

/* Types of a long field: a text, or bytes, of at most `bound` bytes, 1 to 256. An event has one of them at most; it takes the 16 bits, so that
 * the other fields have two words. Each 24 bytes are one record more in the ring. What is longer is cut, a text between characters, and shown
 * with an ellipsis at its end. */
#define TALEA_LONG_TEXT(bound) TALEA_LONG(0x10000u, bound)
#define TALEA_LONG_BYTES(bound) TALEA_LONG(0x20000u, bound)
#define TALEA_LONG(type, bound) ((type) | ((uint32_t)(bound) > 0xffffu ? 0u : (uint32_t)(bound)))

struct talea_field {
    const char *name;
    uint32_t type; /* enum talea_type, or a long type */
};

struct talea_event {
    const char *name;
    const char *about; /* what it says, one sentence */
    const struct talea_field *fields;
    size_t field_count;
};

/* The value of a field of TALEA_LONG_BYTES. */
struct talea_span {
    const unsigned char *data; /* NULL is none, whatever the length */
    size_t length;
};

/* The value of a field: `u` of unsigned types and TALEA_BOOL, `i` of signed ones and TALEA_DURATION, `f` of floating-point ones, `text` of
 * TALEA_TEXT and TALEA_LONG_TEXT, `span` of TALEA_LONG_BYTES. A null text, and a null span, is an empty one. */
union talea_value {
    uint64_t u;
    int64_t i;
    double f;
    const char *text;
    const unsigned char *bytes; /* 8 or 16 of them */
    const struct talea_span *span;
};

typedef struct talea_stream talea_stream;
typedef struct talea_family talea_family;
typedef struct talea_ring talea_ring;

/* Publishes a stream of this name. NULL on failure, of which talea_error tells. */
talea_stream *talea_publish(const char *name);

/* Ends and removes the stream; NULL is fine. */
void talea_unpublish(talea_stream *stream);

/* Registers a family of up to 255 events; it stays for as long as the process. NULL on failure. */
const talea_family *talea_register(const char *name, const char *about, const struct talea_event *events, size_t event_count);

/* Gives the calling thread a ring before its real-time work; without it, a thread gets one at its first event. NULL on failure. */
talea_ring *talea_attach_thread(const char *name);

/* Gives the ring back, on the thread that has it; NULL is fine. */
void talea_detach_thread(talea_ring *ring);

/* Whether anybody wants the event; 0 or 1. For values that take long to compute. */
int talea_is_on(const talea_family *family, size_t event);

/* Writes the event, counted from 0 as registered, if anybody wants it, with as many values as it has fields. A null family is fine. */
void talea_write(const talea_family *family, size_t event, const union talea_value *values);

/* Why the last call of this thread failed; valid until its next one. */
const char *talea_error(void);

#ifdef __cplusplus
}
#endif

#endif

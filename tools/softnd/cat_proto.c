/* SPDX-License-Identifier: MIT
 * cat_proto.c - see cat_proto.h.
 */
#include "cat_proto.h"

#include <string.h>

static const uint8_t magic[4] = { 'S', 'N', 'D', 'C' };

static void put(uint8_t *at, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static uint64_t get(const uint8_t *at, int bytes) {
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | at[i];
    return v;
}

void cat_pack(const struct cat_message *m, uint8_t out[CAT_MESSAGE_BYTES]) {
    memcpy(out, magic, sizeof magic);
    out[4] = (uint8_t)m->type;
    out[5] = CAT_VERSION;
    put(out + 6, 0, 2);
    put(out + 8, m->bytes, 4);
    put(out + 12, m->token, 4);
    put(out + 16, m->value, 8);
    put(out + 24, m->address, 8);
    memcpy(out + 32, m->data, sizeof m->data);
}

bool cat_unpack(const uint8_t *in, size_t len, struct cat_message *m) {
    if (len < CAT_MESSAGE_BYTES || memcmp(in, magic, sizeof magic) != 0) return false;
    if (in[4] < CAT_OFFER || in[4] > CAT_ABORT || in[5] != CAT_VERSION) return false;
    m->type = (enum cat_type)in[4];
    m->bytes = (uint32_t)get(in + 8, 4);
    m->token = (uint32_t)get(in + 12, 4);
    m->value = get(in + 16, 8);
    m->address = get(in + 24, 8);
    memcpy(m->data, in + 32, sizeof m->data);
    return true;
}

void cat_pack_greeting(const struct cat_greeting *g, uint8_t out[CAT_GREETING_BYTES]) {
    memcpy(out, magic, sizeof magic);
    out[4] = CAT_VERSION;
    out[5] = (uint8_t)g->mode;
    put(out + 6, g->slots, 2);
}

bool cat_unpack_greeting(const uint8_t *in, size_t len, struct cat_greeting *g) {
    uint16_t slots;

    if (len < CAT_GREETING_BYTES || memcmp(in, magic, sizeof magic) != 0) return false;
    if (in[4] != CAT_VERSION || in[5] < CAT_WRITE || in[5] > CAT_SEND) return false;
    slots = (uint16_t)get(in + 6, 2);
    if (slots < 1 || slots > CAT_SLOTS_MAX) return false;
    *g = (struct cat_greeting){ .mode = (enum cat_mode)in[5], .slots = slots };
    return true;
}

static const char *const names[] = {
    [CAT_WRITE] = "write", [CAT_READ] = "read", [CAT_SEND] = "send"
};

const char *cat_mode_name(enum cat_mode mode) {
    return names[mode];
}

bool cat_parse_mode(const char *text, enum cat_mode *mode) {
    for (int i = CAT_WRITE; i <= CAT_SEND; i++)
        if (!strcmp(text, names[i])) {
            *mode = (enum cat_mode)i;
            return true;
        }
    return false;
}

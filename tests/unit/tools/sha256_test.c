/* SPDX-License-Identifier: MIT
 * sha256_test.c - SHA-256 against published values, in both engines and every way to cut input.
 */
#include "sha256.h"

#include "support/testing.h"

static void digest_of(const void *data, size_t len, size_t step, char out[SHA256_TEXT_MAX]) {
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];

    sha256_init(&s);
    for (size_t at = 0; at < len; at += step)
        sha256_update(&s, (const uint8_t *)data + at, len - at < step ? len - at : step);
    sha256_final(&s, digest);
    sha256_text(digest, out);
}

static void known_inputs_have_their_published_digests(void) {
    static const struct {
        const char *text, *digest;
    } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
          "l"
          "mnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char out[SHA256_TEXT_MAX];

    for (int portable = 0; portable < 2; portable++) {
        sha256_use_portable(portable);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            digest_of(cases[i].text, strlen(cases[i].text), 1000, out);
            CHECK_STR(out, cases[i].digest);
        }
    }
    sha256_use_portable(0);
}

static void a_million_letters_have_their_published_digest(void) {
    char *data = malloc(1000000), out[SHA256_TEXT_MAX];

    CHECK(data);
    memset(data, 'a', 1000000);
    for (int portable = 0; portable < 2; portable++) {
        sha256_use_portable(portable);
        digest_of(data, 1000000, 77777, out);
        CHECK_STR(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
    sha256_use_portable(0);
    free(data);
}

static void input_cut_anywhere_gives_the_same(void) {
    uint8_t data[300];
    char whole[SHA256_TEXT_MAX], cut[SHA256_TEXT_MAX];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len <= sizeof data; len++) {
        sha256_use_portable(1);
        digest_of(data, len, 1000, whole);
        sha256_use_portable(0);
        for (size_t step = 1; step < 130; step += step < 8 ? 1 : 17) {
            digest_of(data, len, step, cut);
            CHECK_STR(cut, whole);
        }
    }
}

static void portable_engine_can_be_forced(void) {
    sha256_use_portable(1);
    CHECK_STR(sha256_engine(), "portable");
    sha256_use_portable(0);
    CHECK(sha256_engine()[0]);
}

TEST_MAIN(TEST(known_inputs_have_their_published_digests),
          TEST(a_million_letters_have_their_published_digest),
          TEST(input_cut_anywhere_gives_the_same), TEST(portable_engine_can_be_forced))

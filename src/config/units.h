/*
 * Numbers as they stand in sandbox.yaml. All are decimal, without sign, blank or leading '+'; no
 * floating point is involved. Each parser returns 0 and sets *ret, or -EINVAL (not such a number) or
 * -ERANGE (it does not fit), and touches *ret only on success.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Long enough for every text that the format functions write. */
#define CONFIG_UNIT_TEXT 32

int config_parse_u64(const char *s, uint64_t *ret);

/* Bytes: an integer, then nothing, b, k, m or g, also written kb or kib, in either case. 1k is 1024, as
 * docker's options have it. */
int config_parse_size(const char *s, uint64_t *ret);

/* Milliseconds: an integer and ms, s, m, h or d; a bare one is seconds. */
int config_parse_duration(const char *s, uint64_t *ret_ms);

/* CPUs in units of 10^-9: "2", "0.5", up to nine decimals. */
int config_parse_cpus(const char *s, uint64_t *ret_nano);

/* The shortest exact text that the parser above reads back as the same value. Return @buf. */
char *config_format_size(uint64_t bytes, char buf[CONFIG_UNIT_TEXT]);
char *config_format_duration(uint64_t ms, char buf[CONFIG_UNIT_TEXT]);
char *config_format_cpus(uint64_t nano, char buf[CONFIG_UNIT_TEXT]);

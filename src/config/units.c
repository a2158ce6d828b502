/*
 * Parsing by digits, not by strtoull() or strtod(): those skip blanks, take signs and depend on the
 * locale, and half a number is not a number here. Every multiplication is checked.
 */
#include "config/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NANO UINT64_C(1000000000)

struct unit {
        const char *name;
        uint64_t factor;
};

/* Largest first, for the format functions; the first name of a factor is the one that they write. */
static const struct unit size_units[] = {
        { "g", 1 << 30 },   { "gb", 1 << 30 },  { "gib", 1 << 30 }, { "m", 1 << 20 },
        { "mb", 1 << 20 },  { "mib", 1 << 20 }, { "k", 1 << 10 },   { "kb", 1 << 10 },
        { "kib", 1 << 10 }, { "", 1 },          { "b", 1 },
};
static const struct unit duration_units[] = {
        { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "", 1000 }, { "ms", 1 },
};

/* Digits at the front of *s; moves *s behind them. */
static int take_digits(const char **s, uint64_t *ret) {
        const char *p = *s;
        uint64_t v = 0;

        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
                        return -ERANGE;
        *s = p;
        *ret = v;
        return 0;
}

int config_parse_u64(const char *s, uint64_t *ret) {
        uint64_t v;
        int r = take_digits(&s, &v);

        if (r < 0)
                return r;
        if (*s)
                return -EINVAL;
        *ret = v;
        return 0;
}

static int parse_with(const char *s, const struct unit *units, size_t n, uint64_t *ret) {
        uint64_t v;
        int r = take_digits(&s, &v);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (strcasecmp(s, units[i].name) != 0)
                        continue;
                if (__builtin_mul_overflow(v, units[i].factor, &v))
                        return -ERANGE;
                *ret = v;
                return 0;
        }
        return -EINVAL;
}

static char *format_with(uint64_t v, const struct unit *units, size_t n, char *buf) {
        for (size_t i = 0; i < n; i++)
                if (v > 0 && v % units[i].factor == 0) {
                        snprintf(buf, CONFIG_UNIT_TEXT, "%" PRIu64 "%s", v / units[i].factor,
                                 units[i].name);
                        return buf;
                }
        return strcpy(buf, "0");
}

int config_parse_size(const char *s, uint64_t *ret) {
        return parse_with(s, size_units, sizeof(size_units) / sizeof(size_units[0]), ret);
}

int config_parse_duration(const char *s, uint64_t *ret_ms) {
        size_t len = strlen(s);

        /* Sizes are case-insensitive because docker's are; an "M" here could be meant as months. */
        if (len > 0 && s[len - 1] >= 'A' && s[len - 1] <= 'Z')
                return -EINVAL;
        if (len > 1 && s[len - 2] >= 'A' && s[len - 2] <= 'Z')
                return -EINVAL;
        return parse_with(s, duration_units, sizeof(duration_units) / sizeof(duration_units[0]), ret_ms);
}

int config_parse_cpus(const char *s, uint64_t *ret_nano) {
        uint64_t whole, nano = 0, scale = NANO;
        int r = take_digits(&s, &whole);

        if (r < 0)
                return r;
        if (*s == '.') {
                if (!*++s)
                        return -EINVAL;
                for (; *s >= '0' && *s <= '9' && scale > 1; s++) {
                        scale /= 10;
                        nano += (uint64_t)(*s - '0') * scale;
                }
        }
        if (*s)
                return -EINVAL;
        if (__builtin_mul_overflow(whole, NANO, &whole) || __builtin_add_overflow(whole, nano, &whole))
                return -ERANGE;
        *ret_nano = whole;
        return 0;
}

char *config_format_size(uint64_t bytes, char buf[CONFIG_UNIT_TEXT]) {
        return format_with(bytes, size_units, sizeof(size_units) / sizeof(size_units[0]), buf);
}

char *config_format_duration(uint64_t ms, char buf[CONFIG_UNIT_TEXT]) {
        return format_with(ms, duration_units, sizeof(duration_units) / sizeof(duration_units[0]), buf);
}

char *config_format_cpus(uint64_t nano, char buf[CONFIG_UNIT_TEXT]) {
        int n = snprintf(buf, CONFIG_UNIT_TEXT, "%" PRIu64 ".%09" PRIu64, nano / NANO, nano % NANO);

        while (buf[n - 1] == '0')
                buf[--n] = 0;
        if (buf[n - 1] == '.')
                buf[n - 1] = 0;
        return buf;
}

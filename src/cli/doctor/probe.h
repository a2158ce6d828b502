/* The probes of the real system: see struct doctor_probes. */
#pragma once

#include "cli/doctor/doctor.h"

int probe_engine(const char *socket, const char *path, int64_t end_ms, long *ret_http, json_t **ret,
                 struct errmsg *e);
int probe_manager(const char *socket, int64_t end_ms, json_t **ret, struct errmsg *e);
int probe_audit_state(int64_t end_ms, struct doctor_audit *ret, struct errmsg *e);
int probe_audit_write(const char *fields, struct errmsg *e);

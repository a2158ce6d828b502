/*
 * The keys of ENGINE_INFO_IS: "key=value\n" lines in this order. Values hold no control characters. The
 * keys marked * may stand more than once, any key may be missing: an engine does not say everything.
 */
#pragma once

#define ENGINE_INFO_VERSION "engine_version"        /* 20.10.24+dfsg1 */
#define ENGINE_INFO_API "api_version"               /* what broker and engine agreed on: 1.41 */
#define ENGINE_INFO_KERNEL "kernel"                 /* uname -r of the engine's machine */
#define ENGINE_INFO_CGROUP_VERSION "cgroup_version" /* 1 or 2 */
#define ENGINE_INFO_CGROUP_DRIVER "cgroup_driver"   /* cgroupfs, systemd, none */
#define ENGINE_INFO_STORAGE "storage_driver"        /* overlay2, … */
#define ENGINE_INFO_SECCOMP "seccomp"               /* yes or no, from the security options */
#define ENGINE_INFO_APPARMOR "apparmor"             /* yes or no */
#define ENGINE_INFO_USERNS "userns"                 /* yes or no */
#define ENGINE_INFO_ROOTLESS "rootless"             /* yes or no */
#define ENGINE_INFO_SECURITY "security" /* * name=seccomp,profile=default as the engine puts it */
#define ENGINE_INFO_WARNING "warning"   /* * e.g. "WARNING: No swap limit support" */

/* What the sandboxes have: the layers that the manager tells of, and an image for each profile. */
#include "cli/doctor/doctor.h"

#include <string.h>

#define IMAGE_MS 200

/* How bad each state of a layer is. Some states are a profile's own choice. */
static const struct {
        const char *layer, *check;
        enum doctor_result degraded, disabled, unsupported;
        const char *mend;
} layers[] = {
        { "limits", "limits", DOCTOR_WARNING, DOCTOR_FAILURE, DOCTOR_FAILURE,
          "sudoedit /etc/default/grub && sudo update-grub # boot with cgroup_enable=memory swapaccount=1" },
        { "seccomp", "seccomp", DOCTOR_WARNING, DOCTOR_FAILURE, DOCTOR_FAILURE,
          "sudoedit /etc/docker/daemon.json && sudo systemctl restart docker # without seccomp-profile" },
        { "apparmor", "apparmor", DOCTOR_WARNING, DOCTOR_WARNING, DOCTOR_WARNING,
          "sudo apt-get install apparmor # and boot with apparmor=1 security=apparmor" },
        { "namespaces", "userns", DOCTOR_WARNING, DOCTOR_FAILURE, DOCTOR_FAILURE,
          "sudoedit /etc/docker/daemon.json && sudo systemctl restart docker # \"userns-remap\": \"default\"; host "
          "folders cannot be mounted then" },
        { "capabilities", "capabilities", DOCTOR_WARNING, DOCTOR_FAILURE, DOCTOR_FAILURE,
          "hermes-sandbox status" },
        { "rootfs", "rootfs", DOCTOR_WARNING, DOCTOR_WARNING, DOCTOR_WARNING,
          "sudoedit /etc/hermes-sandbox/sandbox.yaml # the profile's read_only: true" },
        { "network", "network", DOCTOR_OK, DOCTOR_OK, DOCTOR_OK, NULL },
        { "audit", "audit", DOCTOR_WARNING, DOCTOR_WARNING, DOCTOR_WARNING,
          "sudo apt-get install auditd && sudo hermes-sandbox stop && sudo hermes-sandbox start" },
};
#define N_LAYERS (sizeof(layers) / sizeof(layers[0]))

static void say_layer(struct doctor *d, size_t i, const char *profile, const json_t *layer) {
        const char *state = doctor_json_str(layer, "state");
        enum doctor_result r = strcmp(state, "active") == 0     ? DOCTOR_OK
                               : strcmp(state, "degraded") == 0 ? layers[i].degraded
                               : strcmp(state, "disabled") == 0 ? layers[i].disabled
                                                                : layers[i].unsupported;

        doctor_say(d, r, r == DOCTOR_OK ? NULL : layers[i].mend, "profile %s: %s", profile,
                   doctor_json_str(layer, "why"));
}

void check_layers(struct doctor *d) {
        const json_t *pools = json_object_get(d->status, "pools"), *p, *of, *layer;
        const char *own = d->check;
        bool any = false;

        for (size_t i = 0; i < N_LAYERS; i++) {
                d->check = layers[i].check;
                for (size_t j = 0; (p = json_array_get(pools, j)); j++) {
                        of = json_object_get(p, "layers");
                        layer = json_object_get(of, layers[i].layer);
                        if (!layer)
                                continue;
                        any = true;
                        say_layer(d, i, doctor_json_str(p, "profile"), layer);
                }
        }
        d->check = own;
        if (!any)
                doctor_say(d, DOCTOR_WARNING, "hermes-sandbox status",
                           "limits, seccomp, AppArmor, user namespaces: not known until %s",
                           d->status ? "a sandbox is warm" : "the manager answers");
}

/* --- images ---------------------------------------------------------------------------------------- */

/* The first who asks for one waits for the image. */
static void say_unused(struct doctor *d, const struct config_profile *p) {
        doctor_say(d, DOCTOR_OK, NULL, "profile %s: no sandbox of %s is kept warm (size 0)", p->name,
                   p->image);
}

static void ask_engine(struct doctor *d, const struct config_profile *p) {
        char path[512], socket[PATH_MAX], mend[400];
        json_t *reply = NULL;
        struct errmsg e;
        long http;

        /* A name of an image has no character that means something else in a path. */
        snprintf(path, sizeof(path), "/images/%s/json", p->image);
        snprintf(mend, sizeof(mend), "sudo hermes-sandbox image pull %s", p->name);
        if (d->probes->engine(doctor_path(d, doctor_engine_socket(d), socket), path,
                              doctor_until(d, IMAGE_MS), &http, &reply, &e) < 0)
                doctor_say(d, DOCTOR_WARNING, DOCTOR_AS_ROOT, "profile %s: %s", p->name, e.text);
        else if (http == 200)
                doctor_say(d, DOCTOR_OK, NULL, "profile %s: %s is there", p->name, p->image);
        else if (http == 404 && p->size == 0)
                say_unused(d, p);
        else if (http == 404)
                doctor_say(d, DOCTOR_FAILURE, mend, "profile %s: the engine has no image %s", p->name,
                           p->image);
        else
                doctor_say(d, DOCTOR_WARNING, "hermes-sandbox status",
                           "profile %s: the engine answers with status %ld for image %s: %s", p->name,
                           http, p->image, doctor_json_str(reply, "message"));
        json_decref(reply);
}

/* A sandbox that is warm was made of its image. */
static bool is_warm(const struct doctor *d, const char *profile) {
        const json_t *pools = json_object_get(d->status, "pools"), *p;

        for (size_t i = 0; (p = json_array_get(pools, i)); i++)
                if (strcmp(doctor_json_str(p, "profile"), profile) == 0)
                        return json_integer_value(json_object_get(p, "warm")) > 0;
        return false;
}

void check_images(struct doctor *d) {
        for (size_t i = 0; d->config && i < d->config->n_profiles; i++) {
                const struct config_profile *p = &d->config->profiles[i];
                char what[400];

                if (d->version) {
                        ask_engine(d, p);
                } else if (is_warm(d, p->name)) {
                        doctor_say(d, DOCTOR_OK, NULL, "profile %s: sandboxes of %s are warm", p->name,
                                   p->image);
                } else if (p->size == 0) {
                        say_unused(d, p);
                } else if (d->uid != 0) {
                        snprintf(what, sizeof(what), "profile %s: %s", p->name, p->image);
                        doctor_say_needs_root(d, what);
                } else {
                        doctor_say(d, DOCTOR_WARNING, DOCTOR_AS_ROOT,
                                   "profile %s: whether %s is there is not known without an engine",
                                   p->name, p->image);
                }
        }
        if (!d->config)
                doctor_say(d, DOCTOR_WARNING, "hermes-sandbox config check",
                           "which images are needed is not known without a configuration");
}

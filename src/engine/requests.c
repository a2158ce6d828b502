#include "engine/requests.h"

#include "engine/create.h"
#include "engine/create_for.h"
#include "engine/einfo.h"
#include "engine/image.h"
#include "engine/listing.h"
#include "engine/pull.h"
#include "engine/relisten.h"
#include "engine/removal.h"

/* A packet with nothing but the header and one text of at most @n bytes. */
#define TEXT_LEN(n) (ENGINE_HEADER + 4 + (n) + 1)

static const struct request_row rows[] = {
        { ENGINE_CREATE, "create", TEXT_LEN(ENGINE_PROFILE_MAX) + ENGINE_RECIPE, true, false,
          create_request },
        { ENGINE_CREATE_FOR, "create", TEXT_LEN(ENGINE_PROFILE_MAX) + ENGINE_RECIPE + NARROW_LEN_MAX + 1,
          true, true, create_for_request },
        { ENGINE_REMOVE, "remove", TEXT_LEN(ENGINE_ID_LEN), true, false, removal_request },
        { ENGINE_LIST, "list", TEXT_LEN(ENGINE_ID_LEN), true, false, listing_request },
        { ENGINE_INSPECT, "inspect", TEXT_LEN(ENGINE_ID_LEN), true, false, listing_inspect },
        { ENGINE_IMAGE, "image", TEXT_LEN(ENGINE_PROFILE_MAX), true, false, pull_request },
        { ENGINE_IMAGE_LOOK, "image", TEXT_LEN(ENGINE_PROFILE_MAX), true, false, image_look_request },
        { ENGINE_INFO, "info", ENGINE_HEADER, true, false, einfo_request },
        { ENGINE_LISTEN, "listen", TEXT_LEN(ENGINE_ID_LEN), true, false, relisten_request },
};

const struct request_row *requests_find(uint16_t type) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].type == type)
                        return &rows[i];
        return NULL;
}

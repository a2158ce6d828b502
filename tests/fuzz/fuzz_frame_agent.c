/*
 * What the manager reads from an agent, and the agent from the manager. The first byte says who is
 * speaking; with 'p' no header is read: the next byte is a frame's type and the rest its payload, so that
 * new payloads need no matching length.
 */
#include <stdint.h>

#include "fuzz/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < 2)
                return 0;
        switch (data[0]) {
        case 'a':
                stream(data + 1, size - 1, FRAME_FROM_AGENT);
                break;
        case 'm':
                stream(data + 1, size - 1, FRAME_FROM_MANAGER);
                break;
        case 'p':
                decode(&(struct frame){
                        .type = data[1], .len = (uint32_t)(size - 2), .payload = data + 2 });
                break;
        }
        return 0;
}

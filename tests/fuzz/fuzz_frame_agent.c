/*
 * What the manager reads from an agent, and what agent and command line read from the manager: the
 * decoder itself, then each program's own reader. The first byte says who is speaking; with 'p' no
 * header is read: the next byte is a frame's type and the rest its payload, so that new payloads need
 * no matching length.
 */
#include <stdint.h>

#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < 2)
                return 0;
        switch (data[0]) {
        case 'a':
                stream(data + 1, size - 1, FRAME_FROM_AGENT);
                through_conn(data + 1, size - 1, FRAME_FROM_AGENT);
                break;
        case 'm':
                stream(data + 1, size - 1, FRAME_FROM_MANAGER);
                through_link(data + 1, size - 1);
                through_cli(data + 1, size - 1);
                break;
        case 'p':
                decode(&(struct frame){
                        .type = data[1], .len = (uint32_t)(size - 2), .payload = data + 2 });
                break;
        }
        return 0;
}

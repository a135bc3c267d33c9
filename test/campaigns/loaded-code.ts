// Code that the library loads on first use. A campaign loads it before it begins: how long that takes must
// not change the order of what happens.
import '../../src/api/session-parts.ts'
import '../../src/core/append-rules.ts'
import '../../src/engine/encryption/cipher-availability.ts'
import '../../src/engine/encryption/stream-codec.ts'
import '../../src/engine/log/eviction.ts'
import '../../src/engine/service/control.ts'
import '../../src/engine/service/tokens/index.ts'

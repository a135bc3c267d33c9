import { memory } from '../../../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../../../adapters/testing/index.ts'
import type { ExportCounts } from '../../../../adapters/transfer/export-entry.ts'
import { importLines } from '../../../../adapters/transfer/import-lines.ts'
import { linesOf } from '../../../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../../../adapters/transfer/name-filter.ts'
import { Service } from '../../../../adapters/transfer/service.ts'
import { type Engine, open } from '../../../../src/index.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { macrotask } from '../../../../src/runtime/macrotask.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { EXPORT_WORDS, exportText, wholeExport } from '../exports.ts'
import { equal, ok } from '../harness/assertions.ts'
import { transferError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'

/** Gaps may be very large; such an import is interrupted. */
const APPENDS_MAX = 60
const KEY = Buffer.alloc(32, 7).toString('base64')

/** All work must end within this number of turns of the event loop. */
const TURNS = 20

async function imported(lines: string): Promise<ExportCounts> {
  const clock = virtualClock()
  const random = new Prng(1)
  const hw = await open({ storage: memory(), clock, random: () => random.next(), autoCreate: false })
  const input = {
    [Symbol.asyncIterator]: async function* () {
      yield utf8(lines)
    },
  }
  try {
    return await importLines(linesOf(input), new BoundedService(hw), { filter: EVERYTHING, resume: false })
  } finally {
    for (let turn = 0; turn < TURNS; turn++) await macrotask()
    equal(hw.stats().pendingAppends, 0, 'how many appends are left')
    await hw.close()
    equal(clock.pending, 0, 'how many timers are left')
  }
}

/** Interrupts an import that appends very often, as for wide gaps. */
class BoundedService extends Service {
  readonly #interruption: AbortController
  #appends = 0

  constructor(hw: Engine) {
    const interruption = new AbortController()
    super(hw, { encryptionKey: KEY, signal: interruption.signal })
    this.#interruption = interruption
  }

  override append(...args: Parameters<Service['append']>): Promise<void> {
    if (++this.#appends === APPENDS_MAX) this.#interruption.abort()
    return super.append(...args)
  }
}

/** Imports an export into an engine. Every problem must be reported, and nothing may stay open. */
export const imports = target({
  name: 'imports',
  models: wholeExport,
  encode: exportText,
  decode: imported,
  means: (entries) => {
    const end = entries.at(-1)!
    return end.kind === 'end' ? end.counts : undefined
  },
  refuses: transferError,
  verify({ basins, streams, records }, input) {
    ok(basins + streams + records <= input.split('\n').length, 'more is imported than there is')
  },
  memory: { perInputByte: 20_000, beside: 32 * 1024 * 1024 },
  words: EXPORT_WORDS,
  share: 1,
})

import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { type AppendFault, unsteady } from './unsteady-storage.ts'

it.each<[AppendFault, nothingWritten: boolean, tail: number]>([
  ['not written', true, 0],
  ['never written', false, 0],
  ['written', false, 1],
  ['written later', false, 1],
])(
  '%s: an append fails with `nothingWritten` %s and leaves %d records',
  async (fault, nothingWritten, tail) => {
    const inner = memory()
    const faulty = unsteady(inner, { prng: new Prng(1), turnsMax: 3, faults: { [fault]: 1 } })
    const [engine, observer] = [await open({ storage: faulty }), await open({ storage: inner })]
    const appended = engine.basin('basin').stream('stream').append('a')
    await expect(appended).rejects.toMatchObject({ code: 'storage', cause: { nothingWritten } })
    await engine.close()
    expect((await observer.basin('basin').stream('stream').checkTail()).seqNum).toBe(tail)
    await observer.close()
  },
)

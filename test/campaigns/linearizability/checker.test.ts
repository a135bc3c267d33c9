import { describe, expect, it } from 'vitest'
import { checkHistory } from './check-history.ts'
import { timeline } from './timeline.ts'

describe('the checker accepts', () => {
  it.each<[string, string]>([
    ['sequential operations', '[append a,b → 0..2] [tail → 2] [read → a,b] [append c → 2..3] [read → a,b,c]'],
    [
      'concurrent appends in either order',
      `
      [append a → 1..2]
      [append b → 0..1] [read → b,a]`,
    ],
    [
      'a read that sees a concurrent append, and one that does not',
      `
      [  append a → 0..1         ]
      [read → a]   [read → a]
      [read → nothing]`,
    ],
    [
      'one winner of a sequence number',
      `
      [append a if 0 → 0..1]
      [append b if 0 → tail 1]  [append c if 0 → tail 1] [append c if 1 → 1..2] [read → a,c]`,
    ],
    [
      'a fence and the writers that it fences off',
      `
      [fence x → 0..1] [append a with x → 1..2] [append b with y → token x] [fence '' with x → 2..3]
                       [append c → 3..4                                                         ]
                                                [append d with x → token ''                       ] [read → x,a,'',c]`,
    ],
    [
      'a refusal by the token if both conditions fail',
      "[append a if 7 with x → token ''] [append a if 7 with '' → tail 0]",
    ],
    [
      'appends of unknown outcome that took effect, did not, and will later',
      '[append a → ?] [append b → ?] [append c → ?] [read → a] [append d → 1..2] [read → a,d] [read → a,d,c]',
    ],
    ['calls without effect', '[append a → lost] [read → failed] [tail → failed] [read → nothing]'],
    [
      'an ack whose tail includes a later append',
      `
      [append a → 0..1/2]
      [append b → 1..2]   [read → a,b]`,
    ],
  ])('%s', (_, drawing) => {
    expect(checkHistory(timeline(drawing))).toBeUndefined()
  })
})

describe('the checker rejects', () => {
  it.each<[string, string]>([
    ['a stale read', '[append a → 0..1] [append b → 1..2] [read → a] [read → a,b]'],
    [
      'a read that goes backwards',
      `
      [append a → 0..1                        ]
         [read → a]
                    [read → nothing]       [read → a]`,
    ],
    ['a stale tail', '[append a,b → ?] [tail → 2] [tail → 0] [read → a,b]'],
    ['a lost append', '[append a → 0..1] [append b → 0..1] [read → b]'],
    ['an append of unknown outcome that was undone', '[append a → ?] [read → a] [read → nothing] [read → a]'],
    ['an append that was stored twice', '[append a → ?] [read → a,a]'],
    ['an append that was repeated after its ack', '[append a → 0..1] [append b → 2..3] [read → a,a,b]'],
    ['records in another order than acknowledged', '[append a → 0..1] [append b → 1..2] [read → b,a]'],
    ['an order that contradicts real time', '[append a → 1..2] [append b → 0..1] [read → b,a]'],
    [
      'a batch with another one inside',
      `
      [append a,b → ?]
      [append c → 1..2]  [read → a,c,b]`,
    ],
    ['a torn batch', '[append a,b → ?] [read → a]'],
    [
      'two winners of one sequence number',
      `
      [append a if 0 → 0..1]
      [append b if 0 → 1..2] [read → a,b]`,
    ],
    ['a refusal although the condition holds', '[append a → 0..1] [append b if 1 → tail 1] [read → a]'],
    [
      'a refusal with a wrong tail',
      '[append a → 0..1] [append b if 0 → tail 2] [append c → 1..2] [read → a,c]',
    ],
    [
      'a stale fencing token that was accepted',
      '[fence x → 0..1] [fence y → 1..2] [append a with x → 2..3] [read → x,y,a]',
    ],
    ['a refusal by a token that was never set', '[append a with x → token y] [read → nothing]'],
    ['a record that was never appended', '[append a → 0..1] [read → a,b]'],
    ['a record of an append without effect', '[append a → lost] [read → a]'],
    ['an ack with more positions than records', '[append a → 0..2] [read → a]'],
    [
      'an ack whose tail includes an append that began after it',
      '[append a → 0..1/2] [append b → 1..2] [read → a,b]',
    ],
  ])('%s', (_, drawing) => {
    expect(checkHistory(timeline(drawing))).toContain('not linearizable')
  })

  it('and reports the operation that no version of the stream explains', () => {
    const history = timeline('[append a → 0..1] [append b,c → 1..3] [append d → ?] [read → a] [read → a,b,c]')
    expect(checkHistory(history)).toBe(
      'stream s: not linearizable: [53, 62] #3 client 0: read → 1 records: its tail is 1, not from 3 on and ' +
        '[18, 36] #1 client 0: append {"bodies":["b","c"]} → appended, start 1, end 3, tail 3 returned before',
    )
  })

  it('a violation in one of several streams', () => {
    const [append, stale, last] = timeline('[append a → 0..1] [read → nothing] [read → a]')
    expect(checkHistory([append!, { ...stale!, stream: 'other' }, last!])).toBeUndefined()
    expect(checkHistory([append!, stale!, last!])).toContain('not linearizable')
  })
})

import { describe, expect, it } from 'vitest'
import { checkHistory } from './check-history.ts'
import { checkStream } from './check-stream.ts'
import { describeFinding } from './describe-finding.ts'
import type { StreamContents } from './operations.ts'
import { streamHashOf } from './stream-hash.ts'
import { hashOf, timeline } from './timeline.ts'

describe('histories that are linearizable', () => {
  it.each<[string, string]>([
    ['nothing', ''],
    ['sequential operations', '[append a,b → 0..2] [tail → 2] [read → a,b] [append c → 2..3] [read → a,b,c]'],
    ['an empty stream', '[tail → 0] [read → nothing]'],
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
      [append b if 0 → tail 1]  [append c if 0 → tail 1] [append c if 1 → 1..2]`,
    ],
    [
      'a fence and the writers that it fences off',
      `
      [fence x → 0..1] [append a with x → 1..2] [append b with y → token x] [fence '' with x → 2..3]
                       [append c → 3..4                                                         ]
                                                [append d with x → token ''                       ] [read → x,a,'',c]`,
    ],
    ['the first token is the empty one', "[append a with '' → 0..1] [append b with x → token ''] [tail → 1]"],
    [
      'a rejection by the token if both conditions fail',
      "[append a if 7 with x → token ''] [append a if 7 with '' → tail 0]",
    ],
    [
      'a token that is checked before the fence of the same batch',
      "[fence x with '' → 0..1] [fence y with x → 1..2]",
    ],
    ['an append of unknown outcome that took effect', '[append a → ?] [read → a] [tail → 1]'],
    ['one that did not take effect', '[append a → ?] [read → nothing] [append b → 0..1] [read → b]'],
    [
      'one that takes effect much later',
      '[append a → ?] [read → nothing] [append b → 0..1] [tail → 1] [read → b,a]',
    ],
    [
      'one that never takes effect, because its condition fails',
      '[append a if 1 → ?] [append b → 0..1] [append c → 1..2]',
    ],
    [
      'several of unknown outcome, whose order the reads show',
      `
      [append a → ?]   [append d → 4..5] [read → b,c,a,c2,d]
      [append b,c → ?] [tail → 2]
      [append e → ?] [append c2 → 3..4] `,
    ],
    ['an append without effect', '[append a → lost] [read → nothing]'],
    ['a read that failed', '[append a → 0..1] [read → failed] [tail → failed]'],
    [
      'an ack whose tail includes a later append',
      `
      [append a → 0..1/2]
      [append b → 1..2]`,
    ],
  ])('%s', (_, drawing) => {
    expect(checkStream(timeline(drawing)).kind).toBe('linearizable')
  })
})

describe('histories that are not linearizable', () => {
  it.each<[string, string]>([
    ['a lost update', '[append a → 0..1] [append b → 1..2] [read → a]'],
    ['a lost update, by the tail', '[append a → 0..1] [tail → 0]'],
    ['a lost update whose position was assigned again', '[append a → 0..1] [append b → 0..1]'],
    ['a stale read', '[append a → 0..1] [append b → 1..2] [append c → 2..3] [read → a]'],
    [
      'a read that goes backwards',
      `
      [append a → 0..1                        ]
         [read → a] [read → nothing]`,
    ],
    [
      'a read by another client that goes backwards',
      `
      [append a → 0..1                        ]
         [read → a]
                    [tail → 0]`,
    ],
    ['a tail that goes backwards', '[append a,b → ?] [tail → 2] [tail → 0]'],
    ['an append that was stored twice', '[append a → 0..1] [read → a,a]'],
    ['an append of unknown outcome that was stored twice', '[append a → ?] [read → a,a]'],
    ['an append that was repeated after its ack', '[append a → 0..1] [append b → 2..3]'],
    ['appends in another order than acknowledged', '[append a → 0..1] [append b → 1..2] [read → b,a]'],
    ['records of a batch in another order', '[append a,b → 0..2] [read → b,a]'],
    ['a torn batch', '[append a,b → ?] [read → a]'],
    [
      'a batch with another one inside',
      `
      [append a,b → ?]
      [append c → 1..2]  [read → a,c,b]`,
    ],
    ['an order that contradicts real time', '[append a → 1..2] [append b → 0..1]'],
    [
      'two winners of one sequence number',
      `
      [append a if 0 → 0..1]
      [append b if 0 → 0..1]`,
    ],
    [
      'two winners of one sequence number, at different positions',
      `
      [append a if 0 → 0..1]
      [append b if 0 → 1..2]`,
    ],
    ['a condition that did not hold', '[append a → 0..1] [append b if 0 → 1..2]'],
    ['a rejection although the condition held', '[append a → 0..1] [append b if 1 → tail 1]'],
    ['a rejection with a wrong tail', '[append a → 0..1] [append b if 0 → tail 2] [append c → 1..2]'],
    ['a rejection by the tail if the token fails', '[append a if 7 with x → tail 0]'],
    ['a stale fencing token that was accepted', '[fence x → 0..1] [fence y → 1..2] [append a with x → 2..3]'],
    ['a correct token that was rejected', '[fence x → 0..1] [append a with x → token x]'],
    ['a rejection with a wrong token', "[fence x → 0..1] [append a with y → token ''] [tail → 1]"],
    ['a rejection by a fence that was never set', '[append a with x → token y] [tail → 0]'],
    ['a read of a record that was never appended', '[append a → 0..1] [read → a,b]'],
    ['a read of a record that was appended later', '[read → a] [append a → 0..1]'],
    ['a read of a rejected record', '[append a if 1 → tail 0] [read → a]'],
    ['a read of an append without effect', '[append a → lost] [read → a]'],
    ['a read of another record at the position', '[append a → 0..1] [read → b]'],
    ['an append of unknown outcome that was undone', '[append a → ?] [read → a] [read → nothing]'],
    [
      'an append of unknown outcome that took effect against its condition',
      '[append a → 0..1] [append b if 0 → ?] [read → a,b]',
    ],
    ['an ack with more positions than records', '[append a → 0..2]'],
    ['an ack with a gap before it', '[append a → 1..2]'],
    ['an ack whose tail is before its end', '[append a → 0..1] [append b,c → 1..3/2]'],
    ['an ack with a tail that never existed', '[append a → 0..1/2] [append b,c → 1..3]'],
    ['an ack whose tail includes an append that began after it', '[append a → 0..1/2] [append b → 1..2]'],
  ])('%s', (_, drawing) => {
    expect(checkStream(timeline(drawing)).kind).toBe('violation')
  })
})

describe('the search', () => {
  it('reports that it stopped at its limit', () => {
    const pending = Array.from({ length: 6 }, (_, i) => `[append ${'abcdef'[i]} → ?]`).join('\n')
    // Six records with a hash that no order leads to, so that every order must be tried.
    const last = { ...timeline('[read → x,x,x,x,x,x]')[0]!, calledAt: 1_000, returnedAt: 1_001 }
    const { tail, streamHash } = last.outcome as StreamContents
    const history = [...timeline(pending), { ...last, outcome: { kind: 'read', tail, streamHash } as const }]
    expect(checkStream(history).kind).toBe('violation')
    expect(checkStream(history, { configurationsMax: 100 })).toEqual({
      kind: 'undecided',
      configurations: 101,
    })
  })

  it('checks streams one by one', () => {
    const [append, read] = timeline('[append a → 0..1] [read → nothing]')
    expect(checkHistory([append!, { ...read!, stream: 'other' }])).toBeUndefined()
    expect(checkHistory([append!, read!])).toMatchObject({ stream: 's', verdict: { kind: 'violation' } })
  })
})

describe('a finding', () => {
  it('omits operations after the violation and those that it does not need', () => {
    const finding = checkHistory(
      timeline(`
      [tail → 0] [append a → 0..1] [tail → 1] [append b → 1..2] [read → a]   [append c → 2..3]
          [read → nothing] [append x if 7 → tail 1]     [append d → ?]           [append e → 3..4] [read → e]`),
    )!
    const hash = (...bodies: string[]) => streamHashOf(bodies.map(hashOf)).toString(16)
    expect(describeFinding(finding).split('\n')).toEqual([
      'stream s is not linearizable. The longest order ends with (0 operations before are left out):',
      '  [34, 66] #1 client 0: append 1 → 0 to 1',
      '  [92, 124] #3 client 0: append 1 → 1 to 2',
      `which leads to tail 2, hash ${hash('a', 'b')}, token "". One of these must come next, but none can:`,
      `  [128, 146] #4 client 0: read → 1 records, hash ${hash('a')}: the stream has 2 records`,
      '  nor does it help to place any of 1 appends of unknown outcome',
      '#4 has nothing at 1, where the order has record 0 of #3',
    ])
  })

  it('lists a limited number of operations', () => {
    const appends = Array.from({ length: 20 }, (_, i) => `[append ${i} → ${i}..${i + 1}]`)
    const finding = checkHistory(timeline(`${appends.join(' ')} [tail → 3] [append x → 20..21]`))!
    const lines = describeFinding(finding).split('\n')
    expect(lines[0]).toContain('(8 operations before are left out)')
    expect(lines[1]).toContain('#8 client 0')
    expect(lines.at(-1)).toMatch(/#20 client 0: check-tail → 3: the tail is 20$/)
    expect(lines).toHaveLength(15)
  })

  it('states that there were too many orders to decide', () => {
    const history = timeline('[append a → ?]')
    const finding = { stream: 's', history, verdict: { kind: 'undecided', configurations: 7 } } as const
    expect(describeFinding(finding)).toBe('stream s: undecided after 7 configurations of 1 operations')
  })
})

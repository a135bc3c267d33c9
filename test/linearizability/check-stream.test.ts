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
    ['one after the other', '[append a,b → 0..2] [tail → 2] [read → a,b] [append c → 2..3] [read → a,b,c]'],
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
      'a fence, and those who are fenced off',
      `
      [fence x → 0..1] [append a with x → 1..2] [append b with y → token x] [fence '' with x → 2..3]
                       [append c → 3..4                                                         ]
                                                [append d with x → token ''                       ] [read → x,a,'',c]`,
    ],
    ['the first token is the empty one', "[append a with '' → 0..1] [append b with x → token ''] [tail → 1]"],
    [
      'both conditions fail: the token is told',
      "[append a if 7 with x → token ''] [append a if 7 with '' → tail 0]",
    ],
    [
      'a token is checked before the fence of the same batch',
      "[fence x with '' → 0..1] [fence y with x → 1..2]",
    ],
    ['an append of unknown outcome that was made', '[append a → ?] [read → a] [tail → 1]'],
    ['one that was not', '[append a → ?] [read → nothing] [append b → 0..1] [read → b]'],
    [
      'one that is made much later',
      '[append a → ?] [read → nothing] [append b → 0..1] [tail → 1] [read → b,a]',
    ],
    [
      'one that is never made, for its condition fails',
      '[append a if 1 → ?] [append b → 0..1] [append c → 1..2]',
    ],
    [
      'several of unknown outcome, of which the reads tell the order',
      `
      [append a → ?]   [append d → 4..5] [read → b,c,a,c2,d]
      [append b,c → ?] [tail → 2]
      [append e → ?] [append c2 → 3..4] `,
    ],
    ['an append that was not made', '[append a → lost] [read → nothing]'],
    ['a read that failed', '[append a → 0..1] [read → failed] [tail → failed]'],
    [
      'an ack that tells of a later append',
      `
      [append a → 0..1/2]
      [append b → 1..2]`,
    ],
  ])('%s', (_, drawing) => {
    expect(checkStream(timeline(drawing)).kind).toBe('linearizable')
  })
})

describe('histories that are not', () => {
  it.each<[string, string]>([
    ['a lost update', '[append a → 0..1] [append b → 1..2] [read → a]'],
    ['a lost update, by the tail', '[append a → 0..1] [tail → 0]'],
    ['a lost update, its place given away', '[append a → 0..1] [append b → 0..1]'],
    ['a stale read', '[append a → 0..1] [append b → 1..2] [append c → 2..3] [read → a]'],
    [
      'a read that goes back',
      `
      [append a → 0..1                        ]
         [read → a] [read → nothing]`,
    ],
    [
      'a read that goes back, by another client',
      `
      [append a → 0..1                        ]
         [read → a]
                    [tail → 0]`,
    ],
    ['the tail goes back', '[append a,b → ?] [tail → 2] [tail → 0]'],
    ['an append that was made twice', '[append a → 0..1] [read → a,a]'],
    ['an append of unknown outcome that was made twice', '[append a → ?] [read → a,a]'],
    ['an append that was made again after it was acknowledged', '[append a → 0..1] [append b → 2..3]'],
    ['appends in another order than told', '[append a → 0..1] [append b → 1..2] [read → b,a]'],
    ['records of a batch in another order', '[append a,b → 0..2] [read → b,a]'],
    ['a batch that is torn', '[append a,b → ?] [read → a]'],
    [
      'a batch with another inside',
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
      'two winners of one sequence number, at different places',
      `
      [append a if 0 → 0..1]
      [append b if 0 → 1..2]`,
    ],
    ['a condition that did not hold', '[append a → 0..1] [append b if 0 → 1..2]'],
    ['a refusal although the condition held', '[append a → 0..1] [append b if 1 → tail 1]'],
    ['a refusal that tells a wrong tail', '[append a → 0..1] [append b if 0 → tail 2] [append c → 1..2]'],
    ['a refusal for the tail where the token fails', '[append a if 7 with x → tail 0]'],
    ['a stale fencing token that was accepted', '[fence x → 0..1] [fence y → 1..2] [append a with x → 2..3]'],
    ['a token that was refused although it was right', '[fence x → 0..1] [append a with x → token x]'],
    ['a refusal that tells a wrong token', "[fence x → 0..1] [append a with y → token ''] [tail → 1]"],
    ['a refusal for a fence that nobody made', '[append a with x → token y] [tail → 0]'],
    ['a read of what nobody appended', '[append a → 0..1] [read → a,b]'],
    ['a read of what was appended later', '[read → a] [append a → 0..1]'],
    ['a read of what was refused', '[append a if 1 → tail 0] [read → a]'],
    ['a read of what was not made', '[append a → lost] [read → a]'],
    ['a read of another record at the place', '[append a → 0..1] [read → b]'],
    ['an append of unknown outcome that was undone', '[append a → ?] [read → a] [read → nothing]'],
    [
      'an append of unknown outcome, made against its condition',
      '[append a → 0..1] [append b if 0 → ?] [read → a,b]',
    ],
    ['an ack with more places than records', '[append a → 0..2]'],
    ['an ack with a gap before it', '[append a → 1..2]'],
    ['an ack that tells a tail before its end', '[append a → 0..1] [append b,c → 1..3/2]'],
    ['an ack that tells a tail that never was', '[append a → 0..1/2] [append b,c → 1..3]'],
    ['an ack that tells of an append after it', '[append a → 0..1/2] [append b → 1..2]'],
  ])('%s', (_, drawing) => {
    expect(checkStream(timeline(drawing)).kind).toBe('violation')
  })
})

describe('the search', () => {
  it('gives up at its limit and says so', () => {
    const pending = Array.from({ length: 6 }, (_, i) => `[append ${'abcdef'[i]} → ?]`).join('\n')
    // Of six records whose hash is none that any order leads to: all orders have to be tried.
    const last = { ...timeline('[read → x,x,x,x,x,x]')[0]!, calledAt: 1_000, returnedAt: 1_001 }
    const { tail, streamHash } = last.outcome as StreamContents
    const history = [...timeline(pending), { ...last, outcome: { kind: 'read', tail, streamHash } as const }]
    expect(checkStream(history).kind).toBe('violation')
    expect(checkStream(history, { configurationsMax: 100 })).toEqual({
      kind: 'undecided',
      configurations: 101,
    })
  })

  it('takes streams one by one', () => {
    const [append, read] = timeline('[append a → 0..1] [read → nothing]')
    expect(checkHistory([append!, { ...read!, stream: 'other' }])).toBeUndefined()
    expect(checkHistory([append!, read!])).toMatchObject({ stream: 's', verdict: { kind: 'violation' } })
  })
})

describe('a finding', () => {
  it('has neither what came after the violation nor what it does not take', () => {
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

  it('tells at most so many operations', () => {
    const appends = Array.from({ length: 20 }, (_, i) => `[append ${i} → ${i}..${i + 1}]`)
    const finding = checkHistory(timeline(`${appends.join(' ')} [tail → 3] [append x → 20..21]`))!
    const lines = describeFinding(finding).split('\n')
    expect(lines[0]).toContain('(8 operations before are left out)')
    expect(lines[1]).toContain('#8 client 0')
    expect(lines.at(-1)).toMatch(/#20 client 0: check-tail → 3: the tail is 20$/)
    expect(lines).toHaveLength(15)
  })

  it('says that it is none when there were too many orders', () => {
    const history = timeline('[append a → ?]')
    const finding = { stream: 's', history, verdict: { kind: 'undecided', configurations: 7 } } as const
    expect(describeFinding(finding)).toBe('stream s: undecided after 7 configurations of 1 operations')
  })
})

import { expect, it } from 'vitest'
import { coordinate } from '../../adapters/sync/coordinator.ts'

/** Joins an election, and notes what it is called with. */
function join(name: string, notes: string[], as: string) {
  return coordinate(name, {
    onElected: (isElected) => notes.push(`${as} ${isElected ? 'elected' : 'deposed'}`),
    onMessage: (message) => notes.push(`${as} got ${message}`),
  })
}

const turn = () => new Promise<void>((resolve) => setTimeout(resolve))

it('the first candidate of a name is elected, and then the next that is left', async () => {
  const notes: string[] = []
  const [a, b, c] = ['a', 'b', 'c'].map((as) => join('queue', notes, as))
  expect(notes).toEqual([])
  await turn()
  expect(notes).toEqual(['a elected'])
  b!.leave()
  a!.leave()
  a!.leave()
  await turn()
  expect(notes).toEqual(['a elected', 'c elected'])
  c!.leave()
  const again = join('queue', notes, 'd')
  await turn()
  expect(notes.at(-1)).toBe('d elected')
  again.leave()
})

it('messages reach the other candidates of the name', async () => {
  const notes: string[] = []
  const members = [join('one', notes, 'a'), join('one', notes, 'b'), join('other', notes, 'c')]
  await turn()
  notes.length = 0
  members[0]!.post('x')
  members[1]!.post('y')
  await turn()
  expect(notes).toEqual(['b got x', 'a got y'])
  for (const member of members) member.leave()
})

it('a candidate that left sends no further messages', async () => {
  const notes: string[] = []
  const [a, b] = [join('silent', notes, 'a'), join('silent', notes, 'b')]
  a.leave()
  await turn()
  notes.length = 0
  a.post('x')
  await turn()
  expect(notes).toEqual([])
  b.leave()
})

it('a candidate that left receives no further calls', async () => {
  const notes: string[] = []
  const [a, b] = [join('left', notes, 'a'), join('left', notes, 'b')]
  a.post('x')
  a.leave()
  b.leave()
  await turn()
  expect(notes).toEqual([])
})

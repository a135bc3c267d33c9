import { expect, it } from 'vitest'
import { knownMembers, membersWithoutExample } from './shown-members.ts'

// Members that get an example leave the list; new ones do not join it.
it('every public member is in an example, except those of members-without-example.txt', () => {
  expect(membersWithoutExample()).toEqual(knownMembers())
})

it('a member is in an example by its name in a call, in options and in a pattern', () => {
  const code = `const { seqNum } = (await stream.checkTail())\nawait serve(hw, { port: seqNum })`
  const missing = membersWithoutExample([{ at: 'here', language: 'ts', code }])
  const shown = ['Stream.checkTail', 'StreamPosition.seqNum', 'ListenOptions.port', 'serve']
  expect(missing.filter((name) => shown.includes(name))).toEqual([])
  expect(missing).toContain('ListenOptions.host')
})

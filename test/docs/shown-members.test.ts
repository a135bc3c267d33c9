import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { knownMembers, membersWithoutExample } from './shown-members.ts'

it('every public member is in an example, except those of members-without-example.txt', () => {
  const members = membersWithoutExample()
  if (process.env.WRITE) writeFileSync('test/docs/members-without-example.txt', members.join('\n') + '\n')
  expect(members).toEqual(knownMembers())
})

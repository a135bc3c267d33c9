// @module-tag slow

import { expect, it } from 'vitest'
import { membersWithoutExample } from './shown-members.ts'

it('every public member is in an example', () => {
  expect(membersWithoutExample()).toEqual([])
})

it('a member is in an example by its name in a call, in options and in a pattern', () => {
  const code = `const { seqNum } = (await stream.checkTail())\nawait serve(hw, { port: seqNum })`
  const missing = membersWithoutExample([{ at: 'here', language: 'ts', code }])
  const shown = ['Stream.checkTail', 'StreamPosition.seqNum', 'ListenOptions.port', 'serve']
  expect(missing.filter((name) => shown.includes(name))).toEqual([])
  expect(missing).toContain('ListenOptions.host')
})

it('a member that implements another one, and the type of a member, are shown with it', () => {
  const code = `const { errorMs } = measuredOffset(0, 10, 5)\nawait server.metrics({ set: 'account-ops' })`
  const missing = membersWithoutExample([{ at: 'here', language: 'ts', code }])
  const shown = ['ClockOffset', 'ClockOffset.errorMs', 'Headwater.metrics', 'Engine.metrics']
  expect(missing.filter((name) => shown.includes(name))).toEqual([])
  expect(missing).toEqual(expect.arrayContaining(['ClockOffset.offsetMs', 'Engine.stats']))
})

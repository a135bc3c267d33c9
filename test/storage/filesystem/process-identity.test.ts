import { expect, test } from 'vitest'
import {
  mayRun,
  type ProcessIdentity,
  thisProcess,
} from '../../../adapters/storage/filesystem/process-identity.ts'

const onLinux = process.platform === 'linux'
/** More than any system numbers its processes with. */
const GONE = 2 ** 30
const OWN: ProcessIdentity = {
  pid: process.pid,
  host: 'here',
  boot: 'boot',
  namespace: 'pid:[1]',
}
const { boot: _boot, ...WITHOUT_BOOT } = OWN
const { namespace: _namespace, ...WITHOUT_NAMESPACE } = OWN
/** Why a test does not run. */
const linuxOnly = onLinux ? '' : ' (skipped: only Linux tells start times and namespaces of processes)'

test.each<[string, ProcessIdentity, ProcessIdentity, boolean]>([
  ['one that runs', OWN, OWN, true],
  ['one that is gone', { ...OWN, pid: GONE }, OWN, false],
  ['one on another host', { ...OWN, pid: GONE, host: 'elsewhere' }, OWN, true],
  [
    'one of another start: of another machine with the same host name, or of this one before',
    { ...OWN, boot: 'another', pid: GONE },
    OWN,
    true,
  ],
  [
    'one of another container with the same host name',
    { ...OWN, namespace: 'pid:[2]', pid: GONE },
    OWN,
    true,
  ],
  ['one when the start cannot be read', { ...OWN, pid: GONE }, WITHOUT_BOOT, true],
  ['one that did not note the start', { ...WITHOUT_BOOT, pid: GONE }, OWN, true],
  ['one when no start is known', { ...WITHOUT_BOOT, pid: GONE }, WITHOUT_BOOT, onLinux],
  ['one of a namespace that cannot be read', { ...OWN, pid: GONE }, WITHOUT_NAMESPACE, true],
  ['one that did not note its namespace', { ...WITHOUT_NAMESPACE, pid: GONE }, OWN, true],
])('%s', async (_, other, own, expected) => {
  expect(await mayRun(other, own)).toBe(expected)
})

test('where the system tells nothing but numbers, these count, except on Linux', async () => {
  const bare = { pid: process.pid, host: 'here' }
  expect(await mayRun(bare, bare)).toBe(true)
  expect(await mayRun({ ...bare, pid: GONE }, bare)).toBe(onLinux)
})

test.runIf(onLinux)(`one that was given the number of another${linuxOnly}`, async () => {
  const own = await thisProcess()
  expect(await mayRun(own, own)).toBe(true)
  expect(await mayRun({ ...own, started: '1' }, own)).toBe(false)
  // Another time namespace counts from another start of the machine.
  expect(await mayRun({ ...own, started: '1', timeNamespace: 'time:[1]' }, own)).toBe(true)
})

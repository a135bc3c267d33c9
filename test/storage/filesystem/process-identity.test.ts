import { expect, test } from 'vitest'
import {
  mayRun,
  type ProcessIdentity,
  thisProcess,
} from '../../../adapters/storage/filesystem/process-identity.ts'

/** More than any system numbers its processes with. */
const GONE = 2 ** 30
const OWN: ProcessIdentity = {
  pid: process.pid,
  host: 'here',
  boot: 'boot',
  machine: 'machine',
  namespace: 'pid:[1]',
}
const { boot: _boot, ...WITHOUT_BOOT } = OWN
const { machine: _machine, ...WITHOUT_MACHINE } = OWN
const { namespace: _namespace, ...WITHOUT_NAMESPACE } = OWN
const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const linuxOnly = onLinux ? '' : ' (skipped: only Linux tells start times and namespaces of processes)'

test.each<[string, ProcessIdentity, ProcessIdentity, boolean]>([
  ['one that runs', OWN, OWN, true],
  ['one that is gone', { ...OWN, pid: GONE }, OWN, false],
  ['one on another host', { ...OWN, pid: GONE, host: 'elsewhere' }, OWN, true],
  [
    'one on another machine with the same host name',
    { ...OWN, boot: 'a', machine: 'b', pid: GONE },
    OWN,
    true,
  ],
  ['one from before the machine was started anew', { ...OWN, boot: 'another' }, OWN, false],
  [
    'one of another container with the same host name',
    { ...OWN, namespace: 'pid:[2]', pid: GONE },
    OWN,
    true,
  ],
  [
    'one before a start, in a container that was made anew',
    { ...OWN, boot: 'a', namespace: 'b' },
    OWN,
    false,
  ],
  ['one that runs, when the start cannot be read', OWN, WITHOUT_BOOT, true],
  ['one that is gone, when the start cannot be read', { ...OWN, pid: GONE }, WITHOUT_BOOT, false],
  ['one that did not note the start', WITHOUT_BOOT, OWN, true],
  [
    'one that is gone, of the same start on a machine without a name',
    { ...WITHOUT_MACHINE, pid: GONE },
    OWN,
    false,
  ],
  ['one of another start on a machine without a name', { ...WITHOUT_MACHINE, boot: 'another' }, OWN, true],
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
})

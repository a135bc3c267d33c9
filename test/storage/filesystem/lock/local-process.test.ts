import { expect, test } from 'vitest'
import {
  currentProcess,
  type Liveness,
  type ProcessIdentity,
  processLiveness,
} from '../../../../adapters/storage/filesystem/lock/local-process.ts'

const onLinux = process.platform === 'linux'
/** Higher than any pid of a system. */
const UNUSED_PID = 2 ** 30
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

test.each<[string, ProcessIdentity, ProcessIdentity, Liveness]>([
  ['one that runs', OWN, OWN, 'unknown'],
  ['one that is gone', { ...OWN, pid: UNUSED_PID }, OWN, 'dead'],
  ['one on a host without a name', { ...OWN, pid: UNUSED_PID, host: '' }, { ...OWN, host: '' }, 'unknown'],
  ['one on another host', { ...OWN, pid: UNUSED_PID, host: 'elsewhere' }, OWN, 'unknown'],
  [
    'one of another start: of another machine with the same host name, or of this one before',
    { ...OWN, boot: 'another', pid: UNUSED_PID },
    OWN,
    'unknown',
  ],
  [
    'one of another container with the same host name',
    { ...OWN, namespace: 'pid:[2]', pid: UNUSED_PID },
    OWN,
    'unknown',
  ],
  ['one when the start cannot be read', { ...OWN, pid: UNUSED_PID }, WITHOUT_BOOT, 'unknown'],
  ['one that did not note the start', { ...WITHOUT_BOOT, pid: UNUSED_PID }, OWN, 'unknown'],
  [
    'one when no start is known',
    { ...WITHOUT_BOOT, pid: UNUSED_PID },
    WITHOUT_BOOT,
    onLinux ? 'unknown' : 'dead',
  ],
  ['one of a namespace that cannot be read', { ...OWN, pid: UNUSED_PID }, WITHOUT_NAMESPACE, 'unknown'],
  ['one that did not note its namespace', { ...WITHOUT_NAMESPACE, pid: UNUSED_PID }, OWN, 'unknown'],
])('%s', async (_, other, own, expected) => {
  expect(await processLiveness(other, own)).toBe(expected)
})

test('without further data the pid decides, except on Linux', async () => {
  const onlyPid = { pid: process.pid, host: 'here' }
  expect(await processLiveness(onlyPid, onlyPid)).toBe('unknown')
  expect(await processLiveness({ ...onlyPid, pid: UNUSED_PID }, onlyPid)).toBe(onLinux ? 'unknown' : 'dead')
})

test.runIf(onLinux)(`a process that reuses a pid is not the earlier process${linuxOnly}`, async () => {
  const own = await currentProcess()
  expect(await processLiveness(own, own)).toBe('alive')
  expect(await processLiveness({ ...own, started: '1' }, own)).toBe('dead')
  // Another time namespace counts from another start of the machine.
  const elsewhere = { ...own, started: '1', timeNamespace: 'time:[1]' }
  expect(await processLiveness(elsewhere, own)).toBe('unknown')
})

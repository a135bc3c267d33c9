import { expect, test } from 'vitest'
import { localFileSystemName } from '../../../../adapters/storage/filesystem/lock/local-process.ts'
import {
  emptyOwnerLiveness,
  type LocalProcess,
  livenessBySocket,
  type Owner,
  ownerLiveness,
  type ProbeResult,
} from '../../../../adapters/storage/filesystem/lock/owner.ts'

const HERE: LocalProcess = { pid: 1, host: 'here', boot: 'this', device: 7, filesystem: 'ext' }
const SHARED: LocalProcess = { pid: 1, host: 'here', boot: 'this', device: 7 }
const OWNER: Owner = { ...HERE, since: 'a while ago' }
const ON_SHARED: Owner = { ...SHARED, since: 'a while ago' }
const { boot: _boot, ...WITHOUT_BOOT } = OWNER
const { device: _device, ...WITHOUT_SOCKET } = OWNER

test.each<[string, Owner, LocalProcess, ProbeResult, ReturnType<typeof livenessBySocket>]>([
  ['one that answers', OWNER, HERE, 'accepted', 'alive'],
  ['one that answers, of a start that was made up', { ...OWNER, boot: 'other' }, HERE, 'accepted', 'alive'],
  ['one that answers, from another view of the files', { ...OWNER, device: 8 }, HERE, 'accepted', 'alive'],
  ['one that refuses', OWNER, HERE, 'refused', 'dead'],
  ['one that refuses, on a shared file system, on this kernel', ON_SHARED, SHARED, 'refused', 'dead'],
  [
    'one that refuses, on a shared file system, on another kernel',
    { ...ON_SHARED, boot: 'other' },
    SHARED,
    'refused',
    'unknown',
  ],
  [
    'one that refuses, of a shared file system in another place',
    { ...ON_SHARED, device: 8 },
    SHARED,
    'refused',
    'unknown',
  ],
  ['one that refuses, on a remounted local file system', { ...OWNER, device: 8 }, HERE, 'refused', 'dead'],
  ['one that refuses, of an unknown start', WITHOUT_BOOT, HERE, 'refused', 'dead'],
  ['one that refuses, from before a loss of power', { ...OWNER, boot: 'other' }, HERE, 'refused', 'dead'],
  ['one that cannot be asked', OWNER, HERE, 'none', 'unknown'],
  ['one without a socket, of an unknown start', WITHOUT_BOOT, HERE, 'none', 'unknown'],
  [
    'one without a socket, from before a loss of power',
    { ...WITHOUT_SOCKET, boot: 'other' },
    HERE,
    'none',
    'dead',
  ],
  ['one of another start, seen over a network', { ...OWNER, boot: 'other' }, SHARED, 'none', 'unknown'],
  [
    'one that comes over a network to a disk of this machine',
    { ...ON_SHARED, boot: 'other' },
    HERE,
    'refused',
    'unknown',
  ],
  [
    'one on a file system of another kind',
    { ...OWNER, boot: 'other', filesystem: 'xfs' },
    HERE,
    'refused',
    'unknown',
  ],
])('%s', (_, owner, here, answer, expected) => {
  expect(livenessBySocket(owner, here, answer)).toBe(expected)
})

test('the pid decides if nothing else does', async () => {
  const numbered = { ...ON_SHARED, namespace: 'pid:[1]' }
  const here = { ...SHARED, namespace: 'pid:[1]' }
  expect(await ownerLiveness({ ...numbered, pid: 2 ** 30 }, here, 'none')).toBe('dead')
  expect(await ownerLiveness({ ...numbered, pid: 2 ** 30 }, here, 'accepted')).toBe('alive')
  expect(await ownerLiveness({ ...numbered, pid: process.pid }, here, 'none')).toBe('unknown')
  expect(await ownerLiveness({ ...numbered, pid: process.pid }, here, 'refused')).toBe('dead')
})

test.each([
  ['ext4', 0xef53, 'ext'],
  ['tmpfs', 0x01021994, 'tmpfs'],
  ['overlay', 0x794c7630, 'overlay'],
  ['NFS', 0x6969, undefined],
  ['SMB', 0xff534d42, undefined],
  ['FUSE and virtiofs', 0x65735546, undefined],
  ['one that is not known', 1, undefined],
])('whether a file system is local: %s', (_, type, expected) => {
  expect(localFileSystemName(type)).toBe(expected)
})

test.each<[string, LocalProcess, ProbeResult, ReturnType<typeof emptyOwnerLiveness>]>([
  ['that answers', HERE, 'accepted', 'alive'],
  ['that answers, on a shared file system', SHARED, 'accepted', 'alive'],
  ['that refuses', HERE, 'refused', 'dead'],
  ['that refuses, on a shared file system', SHARED, 'refused', 'unknown'],
  ['without a socket', HERE, 'none', 'unknown'],
])('the owner with an empty file %s', (_, local, answer, liveness) => {
  expect(emptyOwnerLiveness(local, answer)).toBe(liveness)
})

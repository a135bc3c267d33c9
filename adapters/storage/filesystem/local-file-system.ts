import { statfs } from 'node:fs/promises'

/**
 * File systems that one kernel has mounted at a time, by the number that Linux gives their type: two that mounted the same disk would destroy them, and those
 * in memory are one kernel's. What else holds them (a machine that was cut off from its disk) cannot change them any more.
 *
 * An overlay counts, for its upper layer may be in one mount at a time. Those that several machines share do not, whatever their name (NFS, SMB, 9P, FUSE and so
 * virtiofs, Ceph, Lustre, GFS2, OCFS2), nor what lies on top of any (eCryptfs).
 */
const LOCAL_TYPES: ReadonlyMap<number, string> = new Map([
  [0xef53, 'ext'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x2fc12fc1, 'zfs'],
  [0xf2f52010, 'f2fs'],
  [0xca451a4e, 'bcachefs'],
  [0x3153464a, 'jfs'],
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
])

/** Its name; undefined for one that other kernels may have mounted too. */
export function localTypeOf(type: number): string | undefined {
  return LOCAL_TYPES.get(type)
}

/** The same of the file system at the path. Undefined too on other systems, which number them otherwise. */
export async function localFileSystem(path: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  return localTypeOf((await statfs(path)).type)
}

import { filesystem } from '../storage/filesystem/index.ts'
import { memory } from '../storage/memory/index.ts'
import type { StorageKind } from './storages.ts'

/** Every storage of this version, the default one first. */
export const KNOWN_STORAGES: readonly StorageKind[] = [
  { name: 'memory', place: 'process', note: 'gone when the process ends', create: () => memory() },
  {
    name: 'filesystem',
    place: 'directory',
    note: 'survives power loss',
    create: (directory) => filesystem(directory),
  },
]

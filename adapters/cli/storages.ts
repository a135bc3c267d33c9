import { type Headwater, open, type Storage } from '../../src/index.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { optionalCiphers } from './optional-ciphers.ts'
import { printable, shown } from './printable.ts'

/** A storage that the command line knows. */
export type StorageKind = ProcessStorageKind | DirectoryStorageKind

interface StorageDescription {
  /** As `--storage` takes it. */
  readonly name: string
  /** What becomes of the data, in some words. */
  readonly note: string
}

interface ProcessStorageKind extends StorageDescription {
  readonly place: 'process'
  create(): Storage
}

interface DirectoryStorageKind extends StorageDescription {
  /** It lives where `--dir` says. */
  readonly place: 'directory'
  create(directory: string): Storage
}

export interface ChosenStorage {
  readonly storage: Storage
  /** `memory (gone when the process ends)`. */
  readonly description: string
}

/**
 * The storage that `--storage` and `--dir` ask for: with a directory alone the first that lives in one, with neither the first of all.
 *
 * @throws CliError
 */
export function chooseStorage(
  kinds: readonly StorageKind[],
  { name, directory }: { readonly name?: string | undefined; readonly directory?: string | undefined },
): ChosenStorage {
  if (directory === '') throw new CliError(2, '--dir must not be empty')
  const kind = name === undefined ? defaultKind(kinds, directory !== undefined) : kindNamed(kinds, name)
  const { name: kindName, note } = kind
  if (kind.place === 'directory') {
    if (directory === undefined) throw new CliError(2, `--storage ${kindName} needs --dir DIR`)
    return {
      storage: kind.create(directory),
      description: `${kindName} in ${printable(directory)} (${note})`,
    }
  }
  if (directory !== undefined) throw new CliError(2, `--dir does not go with --storage ${kindName}`)
  return { storage: kind.create(), description: `${kindName} (${note})` }
}

/** An engine whose owner this process is. */
export async function openEngine(
  { storage }: ChosenStorage,
  { clock }: Pick<CliContext, 'clock'>,
  onBackgroundError: (error: unknown) => void,
): Promise<Headwater> {
  const ciphers = await optionalCiphers(onBackgroundError)
  return open({ storage, clock, ciphers, onBackgroundError })
}

export function storageNames(kinds: readonly StorageKind[]): string {
  return kinds.map(({ name }) => name).join(', ')
}

function kindNamed(kinds: readonly StorageKind[], name: string): StorageKind {
  const kind = kinds.find((candidate) => candidate.name === name)
  if (kind === undefined) {
    throw new CliError(2, `unknown storage ${shown(name)}. Allowed: ${storageNames(kinds)}`)
  }
  return kind
}

function defaultKind(kinds: readonly StorageKind[], inDirectory: boolean): StorageKind {
  const kind = inDirectory ? kinds.find(({ place }) => place === 'directory') : kinds[0]
  if (kind === undefined) {
    throw new CliError(
      1,
      `this version has no storage that keeps its data in a directory, only ${storageNames(kinds)}`,
    )
  }
  return kind
}

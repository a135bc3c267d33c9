import { HeadwaterError } from 'headwater'
import { StorageFailure, type StorageFailureKind } from 'headwater/storage'

const STORAGE: Readonly<Record<StorageFailureKind, string>> = {
  io: 'This browser does not let the page store data. Is this a private window, or is site data blocked?',
  quota:
    'The storage of this page is full. Your messages are safe, but new ones cannot be stored until there is space.',
  blocked: 'Another tab with an older version of this page blocks the storage. Close that tab and try again.',
  closed: 'The storage was closed. Reload the page.',
  denied: 'This page may not write to its storage.',
  corrupt: 'The stored data is damaged and cannot be read.',
  upgraded: 'Another tab has a newer version of this page. Reload this one.',
}

/** Explains an error to the user. */
export function explain(error: unknown): string {
  if (!HeadwaterError.is(error)) return error instanceof Error ? error.message : String(error)
  if (StorageFailure.is(error.cause)) return STORAGE[error.cause.kind]
  if (error.code === 'stream_not_found') return 'This room does not exist.'
  if (error.code === 'invalid' && error.field === 'records')
    return 'This message is too long. The limit is 1 MiB.'
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`
}

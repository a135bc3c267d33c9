import { HeadwaterError, StorageFailure, type StorageFailureKind } from 'headwater'

const STORAGE: Readonly<Record<StorageFailureKind, string>> = {
  io: 'This browser does not let the page store anything. Is this a private window, or are site data blocked?',
  quota:
    'The storage of this page is full. What is there is safe, but nothing can be added until there is more space.',
  blocked: 'Another tab holds the storage in an older version of this page. Close that tab and try again.',
  closed: 'The storage was closed. Reload the page.',
  corrupt: 'What is stored is damaged and cannot be read.',
}

/** What went wrong, for the person in front of it. */
export function explain(error: unknown): string {
  if (!HeadwaterError.is(error)) return error instanceof Error ? error.message : String(error)
  if (StorageFailure.is(error.cause)) return STORAGE[error.cause.kind]
  if (error.code === 'stream_not_found') return 'There is no such room.'
  if (error.code === 'invalid' && error.field === 'records')
    return 'That is too long for one message: 1 MiB is the limit.'
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`
}

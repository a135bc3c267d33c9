import { HeadwaterError } from 'headwater'

/** What a user can do about an error. */
export function problemText(error: unknown): string {
  if (!HeadwaterError.is(error)) return `Something went wrong: ${error}`
  switch (error.code) {
    case 'storage_full':
      return 'The storage of this device is full. Remove data of other pages, and try again.'
    case 'storage':
      return 'This browser does not let the page store data. Is this a private window?'
    case 'history_trimmed':
      return 'The server no longer has the beginning of this list.'
    case 'reducer_failed':
      return 'This page is too old for the list. Reload it.'
    default:
      return `Something went wrong: ${error.message}`
  }
}

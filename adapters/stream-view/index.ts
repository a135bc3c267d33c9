export { EMPTY_VIEW, StreamStore } from './stream-store.ts'
export type {
  ChangingSource,
  FollowedSource,
  ItemOf,
  RecordSource,
  StateSource,
  StreamView,
  UseStreamOptions,
} from './types.ts'

export type {
  ChangingSource,
  FollowedSource,
  ItemOf,
  RecordSource,
  StreamView,
  UseStreamOptions,
} from '../stream-view/index.ts'
export { type StreamViewStore, streamStore } from './stream-store.ts'

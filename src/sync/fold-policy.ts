/** The share of `snapshotEvery` that is enough for one more snapshot when a fold is closed. */
const SHARE_ON_CLOSE = 0.1

/** The most records of the outbox that a snapshot may name. They leave the outbox within moments. */
const LEAVING_MAX = 1_000

/** The progress of a fold and of its snapshots. */
export interface SnapshotProgress {
  /** The sequence number after the last record that the fold has reduced. */
  readonly position: number
  /** The position of the newest snapshot; 0 if there is none. */
  readonly saved: number
  /** The number of records after which a snapshot is due. */
  readonly every: number
  /** The number of confirmed records that are still in the outbox. */
  readonly leaving: number
}

/**
 * Whether a snapshot is due. A fold that catches up stores one each time its position has doubled, so that it
 * makes progress across interruptions without storing a thousand snapshots of a long history.
 */
export function isSnapshotDue(
  { position, saved, every, leaving }: SnapshotProgress,
  isCaughtUp: boolean,
): boolean {
  if (leaving > LEAVING_MAX) return false
  return position - saved >= (isCaughtUp ? every : Math.max(every, saved))
}

/** Whether a fold that is closed stores one more snapshot. */
export function isSnapshotDueOnClose({ position, saved, every, leaving }: SnapshotProgress): boolean {
  return leaving <= LEAVING_MAX && position - saved >= every * SHARE_ON_CLOSE
}

/**
 * Whether a snapshot that another fold has begun to store makes the snapshot of this fold unnecessary. One of
 * the same kind does if its position is less than `every` records earlier. One of another kind does if this
 * fold has loaded or stored a snapshot before: the version of the app that was opened last wins.
 */
export function isSuperseded(
  { position, saved, every }: SnapshotProgress,
  otherPosition: number,
  isSameKind: boolean,
): boolean {
  return isSameKind ? position - otherPosition < every : saved > 0
}

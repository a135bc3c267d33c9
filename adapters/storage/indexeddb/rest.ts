/**
 * What a page begins without, loaded when it is first needed: it opens, reads and appends to what is there before it creates or lists streams or frees space.
 */
export { takeTurns } from './background-turn.ts'
export { commit } from './commit.ts'
export { listDocuments } from './list-documents.ts'
export { measureLogs } from './measure-logs.ts'
export { piecesOf } from './pieces.ts'
export { reclaim } from './reclaim.ts'
export { giveUp, putBy } from './reserve-bytes.ts'
export { measureUsage, persist, usedShare } from './space.ts'

import type { AnyTarget } from '../harness/target.ts'
import * as addresses from './addresses.ts'
import * as answers from './answers.ts'
import * as base64 from './base64.ts'
import * as blocks from './blocks.ts'
import * as clientSessions from './client-sessions.ts'
import * as commandLine from './command-line.ts'
import * as directories from './directories.ts'
import * as events from './events.ts'
import * as exports from './exports.ts'
import * as files from './files.ts'
import * as frames from './frames.ts'
import * as gzip from './gzip.ts'
import * as headers from './headers.ts'
import * as http from './http.ts'
import * as imports from './imports.ts'
import * as journals from './journals.ts'
import * as jsonAppend from './json-append.ts'
import * as jsonChanges from './json-changes.ts'
import * as jsonProvision from './json-provision.ts'
import * as jsonReader from './json-reader.ts'
import * as jsonTokens from './json-tokens.ts'
import * as names from './names.ts'
import * as pages from './pages.ts'
import * as protobuf from './protobuf.ts'
import * as queries from './queries.ts'
import * as sealedBlocks from './sealed-blocks.ts'
import * as segments from './segments.ts'
import * as times from './times.ts'
import * as zstd from './zstd.ts'

export const TARGETS: readonly AnyTarget[] = [
  frames.frames,
  frames.sessionMessages,
  clientSessions.clientSessions,
  gzip.gzip,
  zstd.zstd,
  zstd.zstdLayout,
  base64.base64,
  base64.encryptionKey,
  queries.readQueries,
  ...queries.listQueries,
  queries.metricsQueries,
  events.lastEventId,
  events.events,
  headers.mediaTypes,
  headers.jsonBodies,
  headers.codings,
  headers.dataFormat,
  headers.authorization,
  headers.vendorHeaders,
  names.names,
  names.tokenText,
  times.dateTimes,
  times.durations,
  times.expiries,
  jsonReader.jsonText,
  jsonReader.jsonBytes,
  jsonAppend.appendJson,
  jsonAppend.appendJsonBase64,
  jsonProvision.createBasin,
  jsonProvision.ensureBasin,
  jsonProvision.createStream,
  jsonProvision.ensureStream,
  jsonProvision.streamConfigHeader,
  jsonChanges.reconfigureStream,
  jsonChanges.reconfigureBasin,
  jsonTokens.accessToken,
  jsonTokens.tokenPage,
  jsonTokens.location,
  protobuf.appendInput,
  blocks.plainBlock,
  blocks.blockSpans,
  blocks.sealedBlock,
  journals.journalChanges,
  journals.appendFrame,
  journals.journalGroup,
  segments.chunk,
  segments.chunkBlocks,
  segments.runIndex,
  pages.page,
  pages.pieces,
  files.fileHeader,
  files.fileNames,
  files.ownerFile,
  files.checkpoint,
  directories.directories,
  sealedBlocks.encryptedBlock,
  exports.exportEntry,
  exports.exportLines,
  exports.resumedExport,
  exports.compressedInput,
  exports.gzipMembers,
  imports.imports,
  answers.answeredTail,
  answers.answeredError,
  answers.answeredMismatch,
  answers.answeredRecords,
  answers.answeredAck,
  commandLine.argumentLists,
  commandLine.typedScopes,
  commandLine.typedScopeJson,
  commandLine.printableText,
  addresses.paths,
  addresses.basinAddresses,
  http.http,
  http.httpGuarded,
]

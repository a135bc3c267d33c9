import type { Resource } from '../core/permission.ts'
import type { StreamInfo } from '../model/info.ts'
import type { Operation } from '../model/operations.ts'
import type { Connection, EngineContext, StreamRef } from './context.ts'
import type { RestoredStream } from './control/restored-stream.ts'
import type { CallerServices } from './services.ts'

/** An engine as one caller sees it: what the public classes call. */
export interface EngineView extends CallerServices {
  readonly engine: EngineContext
  readonly connection: Connection
  /** What only the owner of the engine may do; undefined for everybody else. */
  readonly owner: OwnerServices | undefined
  /** Rejects with `authn` or `permission_denied` unless the caller may do one of the operations. */
  check(operations: Operation | readonly Operation[], resource: Resource): Promise<void>
}

export interface OwnerServices {
  createRootToken(): Promise<string | undefined>
  setRootToken(token: string): Promise<void>
  restoreStream(ref: StreamRef, restored: RestoredStream): Promise<StreamInfo>
}

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Connection } from './connection.ts'
import type { ConsoleRoute } from './route.ts'
import type { ProtobufTypes } from './stream/body.ts'

/** The state and services that every part of the console uses. */
export interface Console {
  readonly connection: Connection
  /** Set while the server cannot be reached, which the page shows above every view. */
  readonly loss: Error | undefined
  /** Whether the server has an address, which curl commands can use. */
  readonly hasAddress: boolean
  navigate(route: ConsoleRoute): void
  /** Changes the address of the current view, without a new entry in the history. */
  replaceRoute(route: ConsoleRoute): void
  /** Shows a message for some seconds. */
  announce(message: string): void
  /** The types of protobuf messages that were loaded. */
  readonly protobufTypes: ProtobufTypes | undefined
  setProtobufTypes(types: ProtobufTypes): void
}

export const ConsoleContext = createContext<Console | undefined>(undefined)

export function useConsole(): Console {
  const value = useContext(ConsoleContext)
  if (value === undefined) throw new Error('not inside a console')
  return value
}

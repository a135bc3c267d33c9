/**
 * A schema of Standard Schema v1 (https://standardschema.dev), such as those of zod, valibot and arktype: the
 * part of the interface that headwater uses.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The properties of the specification. */
  readonly '~standard': {
    /** The version of the specification. */
    readonly version: 1
    /** The library of the schema. */
    readonly vendor: string
    /** Validates a value, and may transform it. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** The types of the schema; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** The result of a validation: a value, or issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** A problem with a value. */
interface StandardIssue {
  /** Describes the issue. */
  readonly message: string
  /** The path in the value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The first issue with its path, for messages. */
export function issueText([issue]: readonly StandardIssue[]): string {
  const path = (issue?.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  const message = issue?.message ?? 'does not match the schema'
  return path.length === 0 ? message : `\`${path.join('.')}\`: ${message}`
}

import type { CliContext } from './cli-context.ts'
import { CliError, cliErrorOf, ServiceError } from './failure.ts'
import { issueNotes } from './issue-notes.ts'
import { allTokens } from './list-tokens.ts'
import { printable, retold, shown } from './printable.ts'
import type { IssueArguments, ListArguments, RevokeArguments } from './token-arguments.ts'
import { tokenTable } from './token-table.ts'
import { withTokens } from './with-tokens.ts'

/** `headwater token issue`: standard output is the token and nothing else. */
export async function issueCommand(args: IssueArguments, context: CliContext): Promise<void> {
  const { place, request, json } = args
  const token = await withTokens(place, context, (tokens) => tokens.issue(request))
  context.print(json ? JSON.stringify({ id: request.input.id, access_token: token }) : token)
  for (const line of issueNotes(request.input, place)) context.printError(line)
}

/** `headwater token list`. */
export async function listCommand(args: ListArguments, context: CliContext): Promise<void> {
  const { place, prefix, json } = args
  const tokens = await withTokens(place, context, (service) => allTokens(service, prefix))
  if (json) context.print(JSON.stringify({ access_tokens: tokens }))
  else for (const line of tokenTable(tokens)) context.print(line)
}

/** `headwater token revoke`: what is wrong with one id does not keep the others. */
export async function revokeCommand(args: RevokeArguments, context: CliContext): Promise<void> {
  const { place, ids, json } = args
  const revoked: string[] = []
  let refused = 0
  const tell = () => {
    if (json) context.print(JSON.stringify({ revoked }))
  }
  try {
    await withTokens(place, context, async (tokens) => {
      for (const [index, id] of ids.entries()) {
        try {
          await tokens.revoke(id)
        } catch (error) {
          const failure = cliErrorOf(error)
          if (!(failure instanceof ServiceError && isAboutOne(failure))) throw error
          refused++
          const instead = `(id ${index + 1} of ${ids.length})`
          context.printError(`headwater: ${shown(id, instead)}: ${retold(failure.message, id, instead)}`)
          continue
        }
        revoked.push(id)
        if (!json) context.print(`revoked ${printable(id)}`)
      }
    })
  } finally {
    tell()
  }
  if (refused > 0) throw new CliError(1, `${refused} of ${ids.length} not revoked`)
}

function isAboutOne({ code }: ServiceError): boolean {
  return code === 'access_token_not_found' || code === 'permission_denied'
}

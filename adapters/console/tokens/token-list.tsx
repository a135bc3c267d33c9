import { useState } from 'preact/hooks'
import type { TokenInfo } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { Confirm } from '../ui/dialog.tsx'
import { NameList } from '../ui/list.tsx'
import { IssueToken } from './issue-token.tsx'
import { scopeSummary } from './scope-words.ts'

/** The access tokens of the account. */
export function TokenList() {
  const { client, announce } = useConsole()
  const [isIssuing, setIssuing] = useState(false)
  const [revoking, setRevoking] = useState<string>()
  const [version, setVersion] = useState(0)
  return (
    <>
      <h1 tabIndex={-1}>Access tokens</h1>
      <NameList<TokenInfo>
        noun="token"
        version={version}
        load={async (query, signal) => {
          const call = { method: 'GET', path: ['access-tokens'], query } as const
          const page = await client.json<{ access_tokens: TokenInfo[]; has_more: boolean }>(call, signal)
          return { items: page.access_tokens, hasMore: page.has_more }
        }}
        nameOf={({ id }) => id}
        columns={[
          { title: 'Id', cell: ({ id }) => <span class="name">{id}</span> },
          {
            title: 'Permits',
            isSecondary: true,
            cell: ({ scope, auto_prefix_streams }) => (
              <span class="scope">
                {scopeSummary(scope)}
                {auto_prefix_streams === true && '. Stream names are shown without their prefix'}
              </span>
            ),
          },
          {
            title: 'Expires',
            cell: ({ expires_at }) => (expires_at == null ? 'never' : formatDate(expires_at)),
          },
          {
            title: 'Action',
            cell: ({ id }) => (
              <button
                type="button"
                class="quiet danger"
                aria-label={`Revoke ${id}`}
                onClick={() => setRevoking(id)}
              >
                Revoke
              </button>
            ),
          },
        ]}
        empty={<p class="empty">No token was issued. The root token is not listed.</p>}
        actions={
          <button type="button" class="primary" aria-keyshortcuts="c" onClick={() => setIssuing(true)}>
            Issue token
          </button>
        }
      />
      {isIssuing && (
        <IssueToken
          onClose={() => {
            setIssuing(false)
            setVersion(version + 1)
          }}
        />
      )}
      {revoking !== undefined && (
        <Confirm
          title="Revoke token"
          action="Revoke"
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            await client.json({ method: 'DELETE', path: ['access-tokens', revoking] })
            announce(`Revoked ${revoking}`)
            setRevoking(undefined)
            setVersion(version + 1)
          }}
        >
          <p>
            Requests with the token <strong>{revoking}</strong> are rejected from now on, and its open
            sessions end.
          </p>
        </Confirm>
      )}
    </>
  )
}

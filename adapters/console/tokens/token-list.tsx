import { useState } from 'preact/hooks'
import type { AccessTokenInfo } from '../../../src/model/access.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { Confirm } from '../ui/dialog.tsx'
import { NameList } from '../ui/list.tsx'
import { IssueToken } from './issue-token.tsx'
import { scopeSummary } from './scope-words.ts'

/** The access tokens of the account. */
export function TokenList() {
  const { connection, announce } = useConsole()
  const [isIssuing, setIssuing] = useState(false)
  const [revoking, setRevoking] = useState<string>()
  const [version, setVersion] = useState(0)
  return (
    <>
      <h1 tabIndex={-1}>Access tokens</h1>
      <NameList<AccessTokenInfo>
        noun="token"
        version={version}
        load={(query, options) => connection.hw.listAccessTokens(query, options)}
        nameOf={({ id }) => id}
        columns={[
          { title: 'Id', cell: ({ id }) => <span class="name">{id}</span> },
          {
            title: 'Permits',
            isSecondary: true,
            cell: ({ scope, autoPrefixStreams }) => (
              <span class="scope">
                {scopeSummary(scope)}
                {autoPrefixStreams && '. Stream names are shown without their prefix'}
              </span>
            ),
          },
          {
            title: 'Expires',
            cell: ({ expiresAt }) => (expiresAt === null ? 'never' : formatDate(expiresAt)),
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
            await connection.hw.revokeAccessToken(revoking)
            announce(`Revoked ${revoking}`)
            setRevoking(undefined)
            setVersion(version + 1)
          }}
        >
          <p>
            Requests with the token <strong>{revoking}</strong> are rejected, and its open sessions end.
          </p>
        </Confirm>
      )}
    </>
  )
}

import { useState } from 'preact/hooks'
import { type AccessTokenInfo, accessTokenIdProblem } from '../../../src/model/access.ts'
import { useConsole } from '../context.ts'
import { formatTime, secondsOf } from '../format.ts'
import { NameList } from '../name-list.tsx'
import { ConfirmButton, Dialog, DialogButton, FormDialog } from '../ui/dialog.tsx'
import { Button, CopyButton } from '../ui/elements.tsx'
import { Choice, DurationField, type FormValues, TextField } from '../ui/fields.tsx'
import { PRESETS, ScopeBuilder, scopeWords } from './scope.tsx'

/** The access tokens of the account. */
export function TokenList() {
  const { connection, announce } = useConsole()
  const [version, setVersion] = useState(0)
  const reload = () => setVersion((before) => before + 1)
  const revoke = async (id: string) => {
    await connection.hw.revokeAccessToken(id)
    announce(`Revoked ${id}`)
    reload()
  }
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
            class: 'secondary',
            cell: ({ scope, autoPrefixStreams }) => (
              <span class="long">
                {scopeWords(scope).sentences.join('. ') || 'nothing'}
                {autoPrefixStreams && '. Stream names are shown without their prefix'}
              </span>
            ),
          },
          {
            title: 'Expires',
            cell: ({ expiresAt }) =>
              expiresAt === null ? 'never' : formatTime(expiresAt.getTime(), 'minute'),
          },
          {
            title: 'Action',
            cell: ({ id }) => (
              <ConfirmButton
                class="quiet danger"
                action="Revoke"
                title="Revoke token"
                label={`Revoke ${id}`}
                onConfirm={() => revoke(id)}
              >
                <p>
                  Requests with the token <strong>{id}</strong> are rejected, and its open sessions end.
                </p>
              </ConfirmButton>
            ),
          },
        ]}
        empty={<p class="empty">No token was issued. The root token is not listed.</p>}
        actions={
          <DialogButton text="Issue token" class="primary" aria-keyshortcuts="c">
            {(close) => (
              <IssueToken
                onClose={() => {
                  close()
                  reload()
                }}
              />
            )}
          </DialogButton>
        }
      />
    </>
  )
}

/** A form that issues a token, and shows the token once. */
function IssueToken({ onClose }: { readonly onClose: () => void }) {
  const { hw } = useConsole().connection
  const [scope, setScope] = useState(PRESETS[0]![1])
  const [issued, setIssued] = useState<{ readonly id: string; readonly token: string }>()
  const issue = async ({ id = '', expiry, autoPrefix }: FormValues) => {
    const expiresAt = expiry ? Date.now() + secondsOf(expiry)! * 1000 : null
    const autoPrefixStreams = autoPrefix !== undefined
    const token = await hw.issueAccessToken({ id, scope, autoPrefixStreams, expiresAt })
    setIssued({ id, token })
  }
  if (issued !== undefined) return <Issued {...issued} onClose={onClose} />
  return (
    <FormDialog
      title="Issue token"
      action="Issue"
      isWide
      isDisabled={scopeWords(scope).warnings.length > 0}
      onClose={onClose}
      onSubmit={issue}
    >
      <div class="fields">
        <TextField
          label="Id"
          name="id"
          hint="1 to 96 bytes, such as tenant-7/browser"
          check={accessTokenIdProblem}
          required
        />
        <DurationField label="Expires after" name="expiry" placeholder="With your own token, or never" />
      </div>
      <ScopeBuilder scope={scope} onChange={setScope} />
      <Choice
        label="Hide the stream prefix: it is added to names in requests, and removed from responses"
        name="autoPrefix"
        disabled={!scope.streams || !('prefix' in scope.streams) || scope.streams.prefix === ''}
      />
    </FormDialog>
  )
}

function Issued(props: { readonly id: string; readonly token: string; readonly onClose: () => void }) {
  const { id, token, onClose } = props
  return (
    <Dialog title={`Token ${id}`} onClose={onClose}>
      <p>Copy the token now. It cannot be shown again.</p>
      <pre class="secret">{token}</pre>
      <footer>
        <CopyButton text={() => token} label="Copy token" class="primary" />
        <Button onClick={onClose}>Done</Button>
      </footer>
    </Dialog>
  )
}

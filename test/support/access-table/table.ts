/**
 * What each token may do (docs/protocol.md "Permissions"), written by hand: a row for each token, a column
 * for each operation.
 *
 * A cell holds the letters of the resources on which the operation is permitted; on all the others it is
 * refused with 403. Capital letters are those that exist. `all`: each of them; `-`: none; `401`: the token
 * itself is refused.
 *
 * | | basins | access tokens | streams |
 * |---|---|---|---|
 * | A, a | acme-main, acme-gone | team/one, team/gone | logs/main, logs/gone in acme-main |
 * | B, b | other-main, other-gone | boss/one, boss/gone | audit/main, audit/gone in acme-main |
 * | C, c | | | logs/main, logs/gone in other-main |
 * | d, e | | | logs/gone in acme-gone, in other-gone |
 *
 * For lists the cell holds what they show, `0` being nothing; `list-streams` holds the basins, and `shows`
 * the streams that are listed. `yes`: an operation that is about no resource. `~`: permitted, but under an
 * automatic prefix the name means a stream that does not exist.
 */
export const ACCOUNT_TABLE = `
              | list-basins
              |     | create-basin
              |     |     | delete-basin
              |     |     |     | reconfigure-basin
              |     |     |     |     | get-basin-config
              |     |     |     |     |     | issue-access-token
              |     |     |     |     |     |     | revoke-access-token
              |     |     |     |     |     |     |     | list-access-tokens
              |     |     |     |     |     |     |     |     | account-metrics
              |     |     |     |     |     |     |     |     |     | list-locations
              |     |     |     |     |     |     |     |     |     |     | get-default-location
              |     |     |     |     |     |     |     |     |     |     |     | set-default-location
root          | AB  | all | all | all | all | all | all | AB  | yes | yes | yes | yes
every op      | AB  | all | all | all | all | all | all | AB  | yes | yes | yes | yes
account read  | AB  | -   | -   | -   | all | -   | -   | AB  | yes | yes | yes | -
account write | -   | all | all | all | -   | all | all | -   | -   | -   | -   | yes
basin read    | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
basin write   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
stream read   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
stream write  | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
no resources  | 0   | -   | -   | -   | -   | -   | -   | 0   | yes | yes | yes | yes
acme          | A   | Aa  | Aa  | Aa  | Aa  | Aa  | Aa  | A   | yes | yes | yes | yes
only main     | A   | A   | A   | A   | A   | A   | A   | A   | yes | yes | yes | yes
only gone     | 0   | a   | a   | a   | a   | a   | a   | 0   | yes | yes | yes | yes
audit         | A   | A   | A   | A   | A   | Bb  | Bb  | B   | yes | yes | yes | yes
prefixed      | AB  | all | all | all | all | all | all | AB  | yes | yes | yes | yes
append        | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
append, trim  | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
append, fence | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
trim, fence   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
read one      | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
creator       | -   | all | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
changer       | -   | -   | -   | all | -   | -   | -   | -   | -   | -   | -   | -
issuer        | -   | -   | -   | -   | -   | Aa  | Aa  | A   | -   | -   | -   | -
list streams  | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -   | -
union         | AB  | -   | -   | -   | all | -   | -   | AB  | yes | yes | yes | -
metrics       | -   | -   | -   | -   | -   | -   | -   | -   | yes | -   | -   | -
expired       | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401
revoked       | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401
other secret  | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401
`

export const BASIN_TABLE = `
              | list-streams | shows | create-stream | delete-stream | get-stream-config | reconfigure-stream | basin-metrics
root          | all          | ABC   | all           | all           | all               | all                | all
every op      | all          | ABC   | all           | all           | all               | all                | all
account read  | -            | -     | -             | -             | -                 | -                  | -
account write | -            | -     | -             | -             | -                 | -                  | -
basin read    | all          | ABC   | -             | -             | all               | -                  | all
basin write   | -            | -     | all           | all           | -                 | all                | -
stream read   | -            | -     | -             | -             | -                 | -                  | -
stream write  | -            | -     | -             | -             | -                 | -                  | -
no resources  | -            | -     | -             | -             | -                 | -                  | -
acme          | Aa           | AB    | AaBbd         | AaBbd         | AaBbd             | AaBbd              | Aa
only main     | A            | A     | A             | A             | A                 | A                  | A
only gone     | a            | -     | d             | d             | d                 | d                  | a
audit         | A            | B     | Bb            | Bb            | Bb                | Bb                 | A
prefixed      | all          | AC    | AaB~bCcde     | AaB~bCcde     | AaB~bCcde         | AaB~bCcde          | all
append        | -            | -     | -             | -             | -                 | -                  | -
append, trim  | -            | -     | -             | -             | -                 | -                  | -
append, fence | -            | -     | -             | -             | -                 | -                  | -
trim, fence   | -            | -     | -             | -             | -                 | -                  | -
read one      | -            | -     | -             | -             | -                 | -                  | -
creator       | -            | -     | all           | -             | -                 | -                  | -
changer       | -            | -     | -             | -             | -                 | all                | -
issuer        | -            | -     | -             | -             | -                 | -                  | -
list streams  | all          | 0     | -             | -             | -                 | -                  | -
union         | -            | -     | -             | all           | -                 | -                  | -
metrics       | -            | -     | -             | -             | -                 | -                  | Aa
expired       | 401          | -     | 401           | 401           | 401               | 401                | 401
revoked       | 401          | -     | 401           | 401           | 401               | 401                | 401
other secret  | 401          | -     | 401           | 401           | 401               | 401                | 401
`

export const STREAM_TABLE = `
              | check-tail | append    | read      | trim      | fence     | stream-metrics
root          | all        | all       | all       | all       | all       | all
every op      | all        | all       | all       | all       | all       | all
account read  | -          | -         | -         | -         | -         | -
account write | -          | -         | -         | -         | -         | -
basin read    | -          | -         | -         | -         | -         | -
basin write   | -          | -         | -         | -         | -         | -
stream read   | all        | -         | all       | -         | -         | all
stream write  | -          | all       | -         | all       | all       | -
no resources  | -          | -         | -         | -         | -         | -
acme          | AaBbd      | AaBbd     | AaBbd     | AaBbd     | AaBbd     | AaBbd
only main     | A          | A         | A         | A         | A         | A
only gone     | d          | d         | d         | d         | d         | d
audit         | Bb         | Bb        | Bb        | Bb        | Bb        | Bb
prefixed      | AaB~bCcde  | AaB~bCcde | AaB~bCcde | AaB~bCcde | AaB~bCcde | AaB~bCcde
append        | -          | AaBbd     | -         | -         | -         | -
append, trim  | -          | AaBbd     | -         | AaBbd     | -         | -
append, fence | -          | AaBbd     | -         | -         | AaBbd     | -
trim, fence   | -          | -         | -         | -         | -         | -
read one      | -          | -         | A         | -         | -         | -
creator       | -          | -         | -         | -         | -         | -
changer       | -          | -         | -         | -         | -         | -
issuer        | -          | -         | -         | -         | -         | -
list streams  | -          | -         | -         | -         | -         | -
union         | -          | all       | -         | -         | -         | -
metrics       | -          | -         | -         | -         | -         | Aad
expired       | 401        | 401       | 401       | 401       | 401       | 401
revoked       | 401        | 401       | 401       | 401       | 401       | 401
other secret  | 401        | 401       | 401       | 401       | 401       | 401
`

/**
 * Making sure of a basin or stream: `new` does not exist, `change` exists with another configuration, `same`
 * with this one. Creating and changing need separate permissions; where nothing is left to do, either is
 * enough.
 */
export const ENSURE_TABLE = `
              | basin new | basin change | basin same | stream new | stream change | stream same
root          | all       | all          | all        | all        | all           | all
account read  | -         | -            | -          | -          | -             | -
account write | all       | all          | all        | -          | -             | -
basin read    | -         | -            | -          | -          | -             | -
basin write   | -         | -            | -          | all        | all           | all
stream write  | -         | -            | -          | -          | -             | -
no resources  | -         | -            | -          | -          | -             | -
acme          | a         | A            | A          | abd        | AB            | AB
only main     | -         | A            | A          | -          | A             | A
only gone     | a         | -            | -          | d          | -             | -
audit         | -         | A            | A          | b          | B             | B
prefixed      | all       | all          | all        | abcde      | AB~C          | AB~C
append        | -         | -            | -          | -          | -             | -
creator       | all       | -            | all        | all        | -             | all
changer       | -         | all          | all        | de         | all           | all
expired       | 401       | 401          | 401        | 401        | 401           | 401
`

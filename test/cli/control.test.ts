import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { resultOf, service } from './run.ts'
import { TARGETS } from './targets.ts'

describe.each(TARGETS)('on %s', (_, makeTarget, retention) => {
  it('create, ls and delete work on basins and streams', async () => {
    const { command } = await makeTarget()
    expect((await command('create app')).err).toEqual([
      `Created basin app; its streams keep records ${retention.text}`,
    ])
    const { out } = await command('create app-logs --json')
    expect(JSON.parse(out[0]!)).toMatchObject({ name: 'app-logs', state: 'active' })
    expect((await command('create app')).err).toEqual(['headwater: basin `app` already exists'])
    expect((await command('create app-logs')).exitCode).toBe(1)
    for (const name of ['web/1', 'web/2', 'api']) await command(['create', `app/${name}`])
    expect((await command('create app/api')).err).toEqual(['headwater: stream `app/api` already exists'])
    expect((await command('ls')).out).toEqual(['app', 'app-logs'])
    expect((await command('ls --prefix app-')).out).toEqual(['app-logs'])
    expect((await command('ls app')).out).toEqual(['api', 'web/1', 'web/2'])
    expect((await command('ls app/web/')).out).toEqual(['web/1', 'web/2'])
    expect((await command('ls app -l')).out[0]).toMatch(/^\S+Z {2,}plain {6,}0 {2}.* api$/)
    expect((await command('ls --long')).out[0]).toMatch(/^\S+Z {2,}active {5,}- {2}.* app$/)
    expect(JSON.parse((await command('ls app --json')).out[0]!)).toMatchObject({ name: 'api', cipher: null })
    expect((await command('delete app/web/1 app-logs')).err).toEqual([
      'Deleted stream app/web/1',
      'Deleted basin app-logs',
    ])
    expect((await command('ls app')).out).toEqual(['api', 'web/2'])
    expect((await command('delete app/web/1')).err).toEqual([expect.stringContaining('(stream_not_found)')])
  })

  it('info and ls -l print the numbers of a stream, and nothing that is not known', async () => {
    const { command } = await makeTarget()
    await command(
      'append app-logs/s --json',
      '{"body":"123","timestamp":1000}\n{"body":"4","timestamp":2000}',
    )
    await command('create app-logs/empty --retention 30d')
    const info = JSON.parse((await command('info app-logs/s --json')).out[0]!)
    expect(info).toMatchObject({
      name: 'app-logs/s',
      records: 2,
      bytes: 20,
      first_seq_num: 0,
      next_seq_num: 2,
      last_write: 2000,
      records_per_second: 0,
      created_at: expect.stringMatching(/^20.*Z$/),
      cipher: null,
    })
    const rows = (await command('info app-logs/empty')).out.map((line) => line.split(/ {2,}/))
    expect(Object.fromEntries(rows)).toEqual({
      stream: 'app-logs/empty',
      records: '0',
      bytes: '0',
      'first sequence number': '0',
      'next sequence number': '0',
      rate: '0 records/s in the last minute',
      retention: '30 days',
      'created at': expect.any(String),
    })
    await command('append app-logs/now --json', '{"body":"a"}\n{"body":"b"}\n{"body":"c"}')
    expect((await command('info app-logs/now')).out).toContainEqual(
      expect.stringMatching(/^rate +0\.05 records\/s in the last minute$/),
    )
    await command('delete app-logs/now')
    expect((await command('info app-logs/missing')).err).toEqual([
      expect.stringContaining('(stream_not_found)'),
    ])
    const [empty, one] = (await command('ls -l app-logs')).out.map((line) => line.split(/ {2,}/))
    expect(empty!.slice(1)).toEqual(['plain', '0', '0 B', '30 days', '-', 'empty'])
    expect([one![2], one![3], one![5], one![6]]).toEqual(['2', '20 B', '1970-01-01T00:00:02Z', 's'])
    expect((await command('ls -l')).out[0]!.split(/ {2,}/)).toMatchObject({ 3: '20 B', 6: 'app-logs' })
  })

  it('ls -l keeps the order of many streams', async () => {
    const { command } = await makeTarget()
    const names = Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, '0')}`)
    for (const name of names) await command(['append', `app/${name}`, 'x', '--quiet'])
    expect((await command('ls -l app')).out.map((line) => line.split(/ {2,}/).at(-1))).toEqual(names)
  })

  it('bench keeps a basin that existed', async () => {
    const { command } = await makeTarget()
    await command('create app')
    expect((await command('bench app --records 10')).exitCode).toBe(0)
    expect([(await command('ls')).out, (await command('ls app')).out]).toEqual([['app'], []])
  })

  it('a deleted basin can be created again', async () => {
    const { command } = await makeTarget()
    await command('append app/s x')
    await command('delete app')
    await expect.poll(async () => (await command('ls')).out).toEqual([])
    expect((await command('append app/s y')).exitCode).toBe(0)
    expect((await command('read app/s')).written).toEqual(['y'])
  })

  it('config changes and prints the configuration of a stream', async () => {
    const { command } = await makeTarget()
    await command('create app')
    expect((await command('create app/s --retention forever')).err).toEqual([
      'Created stream app/s; it keeps records forever',
    ])
    const settings = async (words: string) =>
      Object.fromEntries((await command(words)).out.map((line) => line.split(/ {2,}/) as [string, string]))
    expect(await settings('config app/s')).toEqual({
      storage_class: 'express',
      'retention_policy.infinite': 'yes',
      'timestamping.mode': 'client-prefer',
      'timestamping.uncapped': 'false',
      'delete_on_empty.min_age_secs': '0',
    })
    const change = 'config app/s --retention 12h --storage-class standard --timestamping arrival'
    expect(await settings(`${change} --uncapped true --delete-on-empty 1h`)).toEqual({
      storage_class: 'standard',
      'retention_policy.age': '43200',
      'timestamping.mode': 'arrival',
      'timestamping.uncapped': 'true',
      'delete_on_empty.min_age_secs': '3600',
    })
    expect(await settings('config app/s --retention default --delete-on-empty off')).toMatchObject({
      storage_class: 'standard',
      ...retention.setting,
      'delete_on_empty.min_age_secs': '0',
    })
    const { out } = await command(['config', 'app/s', '--json', '--config', '{"storage_class":"express"}'])
    expect(JSON.parse(out[0]!)).toMatchObject({ storage_class: 'express' })
  })

  it('config changes the configuration of a basin', async () => {
    const { command } = await makeTarget()
    await command('create app')
    const { out } = await command(
      'config app --cipher aes-256-gcm --create-on-append true --create-on-read true --retention 1d --json',
    )
    expect(JSON.parse(out[0]!)).toMatchObject({
      default_stream_config: { retention_policy: { age: 86_400 } },
      stream_cipher: 'aes-256-gcm',
      create_stream_on_append: true,
      create_stream_on_read: true,
    })
    expect((await command('config app --cipher none')).out).toContainEqual(
      expect.stringMatching(/^stream_cipher +-$/),
    )
  })

  it('metrics prints usage in a table or as JSON', async () => {
    const { command } = await makeTarget()
    await command('append metered-basin/s 12345')
    const { out } = await command('metrics metered-basin --set append-throughput,storage')
    expect(out[0]).toMatch(/^SET +METRIC +TIME +VALUE +UNIT$/)
    expect(out).toContainEqual(expect.stringMatching(/^append-throughput +express +\S+Z +13 +bytes$/))
    const [line] = (await command('metrics metered-basin/s --json')).out
    expect(JSON.parse(line!)).toMatchObject({ set: 'storage', values: [{ gauge: { name: 'metered_size' } }] })
    expect((await command('metrics --set active-basins')).out).toContainEqual(
      expect.stringMatching(/^active-basins +active_basins +metered-basin$/),
    )
    await command('append app/s 12345')
    expect((await command('metrics app --set storage')).out).toContainEqual(
      expect.stringMatching(/^storage +metered_size +\S+Z +13 +bytes$/),
    )
    expect(JSON.parse((await command('metrics app/s --json')).out[0]!)).toMatchObject({ set: 'storage' })
    expect(JSON.parse((await command('info app/s --json')).out[0]!)).toMatchObject({ bytes: 13 })
  })
})

it('metrics includes usage of the current second', async () => {
  const clock = virtualClock()
  const { world, requests } = await service({ open: true, clock })
  expect((await resultOf(['metrics', '--set', 'account-ops'], world)).exitCode).toBe(0)
  const end = new URL(requests.at(-1)!.url).searchParams.get('end')
  expect(Number(end)).toBe(Math.floor(clock.now() / 1000) + 1)
})

it('ls lists more than a page', async () => {
  const { hw, world } = await service({ open: true })
  const basin = (await hw.createBasin('app')).info.name
  const names = Array.from({ length: 1_001 }, (_, i) => `s/${String(i).padStart(4, '0')}`)
  await Promise.all(names.map((name) => hw.basin(basin).createStream(name)))
  expect((await resultOf(['ls', 'app'], world)).out).toEqual(names)
})

describe('arguments are rejected with exit code 2 and the invalid value', () => {
  it.each([
    ['append', '`append` requires STREAM; see `headwater append --help`'],
    ['append web x', '`web` is not the name of a stream; expected `BASIN/STREAM`'],
    ['append /web x', '`/web` has no basin; set HEADWATER_BASIN or write BASIN/STREAM'],
    ['append Big/web x', 'invalid basin `Big`: basin name must begin with a lowercase letter or number'],
    ['append a/.. x', 'invalid name `a/..`: stream name must not be "." or ".."'],
    ['append a/ x', 'invalid name `a/`: stream name must not be empty'],
    ['append a/b x --file f', '`--file` cannot be combined with TEXT'],
    ['append a/b --base64', '`--base64` requires `--json`'],
    ['append a/b --header x', 'invalid header `x`; `--header` must be NAME=VALUE'],
    ['append a/b --header', '`--header` requires a value'],
    ['append a/b --json --header a:b', '`--header` cannot be combined with `--json`'],
    ['read a/b --seq-num -1', 'invalid `--seq-num` `-1`; it must be an integer from 0'],
    ['read a/b --seq-num --json', '`--seq-num` requires a value'],
    ['read a/b --until 2030-13-01T00:00:00Z', 'invalid `--until` `2030-13-01T00:00:00Z`; it must be'],
    ['read a/b --seq-num=x', 'invalid `--seq-num` `x`; it must be an integer from 0 to 9007199254740991'],
    ['read a/b --count=1e3', 'invalid `--count` `1e3`'],
    ['read a/b --seq-num 1 --tail-offset 2', 'only one of `--seq-num`, `--timestamp` and `--tail-offset`'],
    ['read a/b --until soon', 'invalid `--until` `soon`; it must be milliseconds, a time such as'],
    ['tail a/b -n ten', 'invalid `--lines` `ten`'],
    ['tail a/b -x', 'unknown option `-x`'],
    ['tail a/b -fnx', 'invalid `--lines` `x`'],
    ['tail a/b -fx', 'unknown option `-x`'],
    ['ls a/b --prefix c', '`--prefix` cannot be combined with BASIN/PREFIX'],
    ['create a --retention 5', 'invalid retention `5`; `--retention` must be'],
    ['create a/b --cipher none', '`--cipher` is a setting of basins, not of streams'],
    ['config a --storage-class slow', 'invalid value `slow`; `--storage-class` must be standard or express'],
    ['config a --config []', '`--config`: '],
    ['config a --config {} --retention 1d', '`--config` cannot be combined with `--retention`'],
    ['fence a/b', '`fence` requires FENCING_TOKEN'],
    [`fence a/b ${'x'.repeat(37)}`, 'FENCING_TOKEN: '],
    ['trim a/b all', 'invalid SEQ_NUM `all`'],
    ['metrics --set odd', 'unknown metric set `odd`; expected active-basins, account-ops'],
    ['metrics --interval week', 'invalid value `week`; `--interval` must be minute, hour or day'],
    ['bench a/b', 'BASIN must not name a stream'],
    ['bench --records 0', '`--records` must be at least 1'],
    ['completion tcsh', 'invalid value `tcsh`; `SHELL` must be bash, zsh or fish'],
    ['help nothing', 'unknown command `nothing`'],
  ])('%s', async (words, message) => {
    const { exitCode, out, err } = await resultOf(words.split(' '))
    expect([exitCode, out, err]).toEqual([2, [], [expect.stringContaining(message)]])
  })

  it('names of HEADWATER_BASIN and HEADWATER_URL', async () => {
    const result = (env: Record<string, string>) => resultOf(['check-tail', '/s'], { env })
    expect((await result({ HEADWATER_BASIN: 'Big' })).err[0]).toContain('from HEADWATER_BASIN')
    const { exitCode, err } = await result({ HEADWATER_BASIN: 'a', HEADWATER_URL: 'nowhere' })
    expect([exitCode, err[0]]).toEqual([2, expect.stringContaining('HEADWATER_URL must be an HTTP URL')])
  })
})

it('bench removes its basin after a failure', async () => {
  const { hw, world } = await service({ open: true })
  const broken = () => Response.json({ code: 'other', message: 'broken' }, { status: 500 })
  const fetch = async (request: Request) =>
    request.method === 'GET' && /\/records\?/.test(request.url) ? broken() : world.fetch(request)
  const { exitCode, err } = await resultOf(['bench', '--records', '10'], { ...world, fetch })
  expect([exitCode, err]).toEqual([1, [expect.stringContaining('broken')]])
  await expect.poll(async () => (await hw.listBasins()).items).toEqual([])
})

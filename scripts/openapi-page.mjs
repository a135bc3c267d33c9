// The page of the site that shows docs/openapi.yaml.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { inProject } from './project.mjs'

const METHODS = ['get', 'head', 'put', 'post', 'patch', 'delete']

/** The document, as an object. */
export function openApiDocument() {
  return parse(readFileSync(inProject('docs', 'openapi.yaml'), 'utf8'))
}

/** The text of the page, in Markdown: a section for each operation, by tag, and one for each schema. */
export function openApiPage() {
  const document = openApiDocument()
  const resolved = (value) =>
    value?.$ref === undefined
      ? value
      : value.$ref
          .slice(2)
          .split('/')
          .reduce((parent, name) => parent[name], document)
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] !== undefined).map((method) => ({
      path,
      method,
      ...item[method],
      parameters: [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(resolved),
    })),
  )
  const lines = [
    '# HTTP reference',
    '',
    'Every path, method and status of the [wire protocol](./protocol), from the OpenAPI 3.1 document, which is',
    '[a file of this site](./openapi.yaml){target="_self"} and the response to `GET /openapi.json` of every',
    'handler. A test provokes each response on a handler and compares it with the document.',
    '',
    document.info.description,
  ]
  for (const { name } of document.tags) {
    lines.push('', `## ${name}`)
    for (const operation of operations.filter(({ tags }) => tags.includes(name))) {
      lines.push('', ...operationLines(operation, resolved))
    }
  }
  lines.push('', '## Schemas')
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const { description, ...rest } = schema
    lines.push('', `### ${name}`, '', ...(description === undefined ? [] : [description, '']))
    lines.push('```json', JSON.stringify(rest, undefined, 2), '```')
  }
  return `${lines.join('\n')}\n`
}

function operationLines({ path, method, summary, security, parameters, requestBody, responses }, resolved) {
  const lines = [`### ${summary}`, '', `\`${method.toUpperCase()} ${path}\``]
  if (security !== undefined) lines.push('', 'Needs no token.')
  if (parameters.length > 0) {
    lines.push('', '| Parameter | In | |', '|---|---|---|')
    for (const { name, in: place, required, description = '' } of parameters) {
      lines.push(`| \`${name}\` | ${place} | ${cell([required && 'required.', description])} |`)
    }
  }
  if (requestBody !== undefined) {
    const need = requestBody.required ? '' : ' (optional)'
    lines.push('', `Body${need}: ${contentText(requestBody.content)}`)
  }
  lines.push('', '| Status | Body | |', '|---|---|---|')
  for (const [status, response] of Object.entries(responses)) {
    const { description, content = {}, headers = {} } = resolved(response)
    const names = Object.keys(headers).map((name) => `\`${name}\``)
    const headerText = names.length > 0 && `Headers: ${names.join(', ')}.`
    lines.push(`| ${status} | ${contentText(content)} | ${cell([description, headerText])} |`)
  }
  return lines
}

function contentText(content) {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      const name = schema?.$ref?.split('/').at(-1)
      return name === undefined ? `\`${type}\`` : `[${name}](#${name.toLowerCase()})`
    })
    .join(', ')
}

function cell(texts) {
  return texts.filter(Boolean).join(' ').replaceAll('|', '\\|').replaceAll('{{', '&#123;{')
}

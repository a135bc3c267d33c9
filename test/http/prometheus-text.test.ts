import { expect, it } from 'vitest'
import { histogramSamples, prometheusText } from '../../adapters/http/prometheus.ts'

it('writes the text format', () => {
  const text = prometheusText([
    {
      name: 'requests_total',
      help: 'All of them,\nwith a \\',
      type: 'counter',
      samples: [
        { labels: { operation: 'a"b\\c\nd', code: '200' }, value: 3 },
        { labels: { operation: 'read' }, value: 0.5 },
      ],
    },
    { name: 'open', help: 'Now', type: 'gauge', samples: [{ value: 7 }] },
  ])
  expect(text).toBe(
    [
      '# HELP requests_total All of them,\\nwith a \\\\',
      '# TYPE requests_total counter',
      'requests_total{operation="a\\"b\\\\c\\nd",code="200"} 3',
      'requests_total{operation="read"} 0.5',
      '# HELP open Now',
      '# TYPE open gauge',
      'open 7',
      '',
    ].join('\n'),
  )
})

it('writes a histogram with cumulative buckets', () => {
  const samples = histogramSamples({ bounds: [1, 10], counts: [2, 0, 3], sum: 99.5 })
  const text = prometheusText([{ name: 'size', help: 'Of it', type: 'histogram', samples }])
  expect(text.split('\n').slice(2)).toEqual([
    'size_bucket{le="1"} 2',
    'size_bucket{le="10"} 2',
    'size_bucket{le="+Inf"} 5',
    'size_sum 99.5',
    'size_count 5',
    '',
  ])
})

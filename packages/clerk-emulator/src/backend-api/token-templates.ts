import type { ApiRequest, Routes } from '../http';
import { parse } from '../http';
import { ApiError, requireFound } from '../instance/api-error';
import type { TokenTemplateRow } from '../instance/data';
import type { Instance } from '../instance/instance';
import { deletedResource } from '../instance/organizations';
import { datedResource } from '../instance/resources';
import { TokenTemplate } from '../instance/settings';
import { putTokenTemplate } from '../instance/token-templates';
import { optionalPage } from './lists';

/** Returns the Backend API routes for token templates. No response contains the signing key of a template. */
export function tokenTemplateRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { tokenTemplates } = instance.store;
  const find = (id: string) => requireFound(tokenTemplates.get(id), `The JWT template ${id}`);
  const shown = (row: TokenTemplateRow) => {
    const { createdAt, updatedAt, signing_key, ...fields } = row;
    return { object: 'jwt_template', ...fields, ...datedResource(row) };
  };
  const save = (body: unknown, id?: string) => {
    const template = parse(TokenTemplate, body);
    const named = tokenTemplates.find(({ name }) => name === template.name);
    if (named && named.id !== id) {
      const message = `A JWT template with the name ${template.name} already exists.`;
      throw new ApiError(400, 'duplicate_record', message, 'name');
    }
    if (id !== undefined) tokenTemplates.put({ ...find(id), name: template.name });
    return shown(putTokenTemplate(instance, template));
  };
  return {
    'GET /v1/jwt_templates': ({ url }) => optionalPage(url, tokenTemplates.all(), shown),
    'POST /v1/jwt_templates': ({ body }) => save(body),
    'GET /v1/jwt_templates/:id': ({ id }) => shown(find(id)),
    'PATCH /v1/jwt_templates/:id': ({ id, body }) => {
      const { id: _, createdAt, updatedAt, ...before } = find(id);
      return save({ ...before, ...body }, id);
    },
    'DELETE /v1/jwt_templates/:id': ({ id }) => {
      tokenTemplates.delete(find(id).id);
      return deletedResource(id, 'jwt_template');
    },
  };
}
